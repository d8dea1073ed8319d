// SPDX-License-Identifier: Apache-2.0
//
// A backend that runs passes on engines: each thread has one, and keeps as many bursts under way as
// the configuration says.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "offline/backend.h"
#include "offline/carrier.h"

namespace warpcache::offline {

class EngineBackend : public Backend {
 public:
  PassResult run(const Pass& pass) override;
  Bytes reply(uint64_t request, uint32_t datagram) const override;

 protected:
  // What the memory is for. Each use has one piece, which a later call replaces.
  enum class Use : uint8_t { kInput, kReplies, kResults };

  explicit EngineBackend(const BackendConfig& config) : config_(config) {}

  // Adds the engine of the next thread, which outlives its use here. Throws std::runtime_error.
  void add(engine::Engine& engine);

  // Memory that the engines can reach. Throws std::bad_alloc.
  virtual uint8_t* take(Use use, uint64_t bytes) = 0;
  // Where the engines find the frames of a pass, and write its replies.
  virtual uint8_t* frames() = 0;
  virtual uint8_t* reply_space() = 0;
  // Called before the time of a pass is measured, and after. end_pass() throws std::runtime_error
  // if the pass has failed.
  virtual void begin_pass(uint64_t reply_bytes) = 0;
  virtual void end_pass() = 0;
  // For a thread that runs a pass: brings frames() and takes reply_space() away while it runs, for
  // batches at `places` places. None: the frames are there before, and the replies stay.
  virtual std::unique_ptr<Carrier> make_carrier(uint32_t /*places*/) { return nullptr; }
  // Whether a pass cannot go on.
  virtual bool failed() const { return false; }

  BackendConfig config_;
  uint8_t* replies_ = nullptr;  // of the last pass, in the host's memory

 private:
  class Arrivals;
  class Server;

  void prepare(const Pass& pass);
  net::PacketBurst burst_of(uint64_t number);

  std::vector<engine::Engine*> engines_;
  Pass pass_;
  uint64_t batch_reply_bytes_ = 0;
  uint64_t reply_bytes_ = 0;   // taken
  uint64_t result_count_ = 0;  // taken
  net::PacketResult* results_ = nullptr;
};

}  // namespace warpcache::offline
