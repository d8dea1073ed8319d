// SPDX-License-Identifier: Apache-2.0
//
// The core in simulation, with a model of its memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ports.h"

class Vmc_core;

namespace warpcache::rtl {

template <typename Model>
class ModelSim;

// The numbers of csr.sv's counters.
enum CoreCounter : uint32_t {
  kFrames,
  kRequests,
  kNotForUs,
  kTruncated,
  kBadChecksum,
  kFragments,
  kUnsupported,
  kMalformed,
  kDatagramsDone,
  kFramesSent,
  kRepliesDropped,
  kHits,
  kMisses,
  kStores,
  kHazardCycles,
  kOtherKey,
};

class Sim {
 public:
  explicit Sim(const SimConfig& config);
  ~Sim();
  Sim(const Sim&) = delete;
  Sim& operator=(const Sim&) = delete;

  // Queues a frame; `damaged`: the MAC reports an error at its end.
  void send(const std::string& frame, bool damaged = false);
  uint64_t frames_queued() const;
  void step();
  // Until nothing is left to do; false after `cycles_max` cycles: the core hangs.
  bool run_until_idle(uint64_t cycles_max = 2'000'000);
  // Frames that have come out since the last call.
  std::vector<std::string> take();
  // Where the core has a host: frames from it, and those to it.
  void send_from_host(const std::string& frame);
  std::vector<std::string> take_for_host();

  void write_register(uint32_t address, uint32_t value);
  uint32_t read_register(uint32_t address);
  uint32_t counter(CoreCounter which) { return read_register(16 + which); }
  void set_next_cas(uint64_t cas);
  void advance(uint32_t seconds) { write_register(0, read_register(0) + seconds); }
  uint64_t cycles() const;
  // Cycles at which the last frame in began and the last frame out began.
  uint64_t in_began() const;
  uint64_t out_began() const;

 private:
  std::unique_ptr<ModelSim<Vmc_core>> core_;
};

}  // namespace warpcache::rtl
