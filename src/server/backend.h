// SPDX-License-Identifier: Apache-2.0
//
// The backend that --engine selects: a store, and an engine for each worker.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "admin/watchers.h"
#include "engine/engine.h"
#include "nic_cache/nic_cache.h"
#include "options/options.h"
#include "request/counters.h"
#include "store/host/active_store.h"
#include "store/host/store.h"

namespace warpcache::server {

class Backend {
 public:
  struct WorkerEngine {
    std::unique_ptr<engine::Engine> engine;
    const request::Counters* counters = nullptr;  // valid as long as the engine
  };

  virtual ~Backend() = default;

  // Creates the store. Returns an error message, or "".
  virtual std::string start() = 0;
  // Makes the engine of the next worker; at most -t of them. `admin` and the backend outlive it.
  virtual std::string make_engine(engine::AdminHandler& admin, WorkerEngine* out) = 0;
  // The engine and its machine, for the banner.
  virtual std::string describe() const = 0;
  // The memory limit in use, in bytes: -m, or the backend's default.
  virtual uint64_t memory_bytes() const = 0;

  // At a graceful stop: keeps the items for the next process (-e). Returns an error as one
  // sentence, or "". REQUIRES: all engines have been destroyed.
  virtual std::string save() { return ""; }

  const store::ActiveStore& store() const { return active_; }
  // The store as a NIC cache sees it; the backend outlives it. REQUIRES: the backend was made with
  // the cache's hooks, and has started.
  virtual std::unique_ptr<nic_cache::StoreAccess> nic_cache_access() = 0;

 protected:
  store::ActiveStore active_;
};

// `watchers` learn of evictions; they outlive the backend. Null: nobody. `copies`: of who owns
// copies of the store's items.
std::unique_ptr<Backend> make_cpu_backend(const Options& options, admin::Watchers* watchers,
                                          const store::CopyHooks& copies);

// Calls `stop` when the GPU has failed and --on-gpu-error=exit. Null if the server was built
// without CUDA. `watchers`: likewise. `copies`: likewise, until the GPU fails.
std::unique_ptr<Backend> make_cuda_backend(const Options& options, admin::Watchers* watchers,
                                           const std::function<void()>& stop,
                                           const store::CopyHooks& copies);

}  // namespace warpcache::server
