// SPDX-License-Identifier: Apache-2.0
//
// What requests run on: a store and an engine for each worker, as --engine says.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "options/options.h"
#include "request/counters.h"
#include "store/host/active_store.h"

namespace warpcache::server {

class Backend {
 public:
  struct WorkerEngine {
    std::unique_ptr<engine::Engine> engine;
    const request::Counters* counters = nullptr;  // as long as the engine
  };

  virtual ~Backend() = default;

  // Makes the store. Returns what is wrong, or "".
  virtual std::string start() = 0;
  // The engine of the next worker; at most as many as -t. `admin` outlives it, and it the backend's
  // end does not.
  virtual std::string make_engine(engine::AdminHandler& admin, WorkerEngine* out) = 0;
  // For the banner: what it is and runs on.
  virtual std::string describe() const = 0;
  // Bytes that are in use as -m.
  virtual uint64_t memory_bytes() const = 0;

  const store::ActiveStore& store() const { return active_; }

 protected:
  store::ActiveStore active_;
};

std::unique_ptr<Backend> make_cpu_backend(const Options& options);

// `stop` is called when the GPU has failed and --on-gpu-error=exit. Null where the server was built
// without CUDA.
std::unique_ptr<Backend> make_cuda_backend(const Options& options,
                                           const std::function<void()>& stop);

}  // namespace warpcache::server
