// SPDX-License-Identifier: Apache-2.0
//
// mc_lanes in simulation: eight lanes, each with frames and a memory of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ports.h"

class VerilatedContext;
class Vmc_lanes;

namespace warpcache::rtl {

class LanesSim {
 public:
  static constexpr uint32_t kLanes = 8;
  explicit LanesSim(const SimConfig& config);
  ~LanesSim();
  LanesSim(const LanesSim&) = delete;
  LanesSim& operator=(const LanesSim&) = delete;

  void send(uint32_t lane, const std::string& frame) { lanes_[lane].frames.send(frame, false); }
  uint64_t frames_queued(uint32_t lane) const { return lanes_[lane].frames.queued(); }
  // Frames that have come out of a lane since the last call.
  std::vector<std::string> take(uint32_t lane) { return lanes_[lane].frames.take(); }
  void step();
  // Until nothing is left to do; false after `cycles_max` cycles: the lanes hang.
  bool run_until_idle(uint64_t cycles_max = 2'000'000);
  // Of all lanes.
  void write_register(uint32_t address, uint32_t value);
  uint32_t read_register(uint32_t lane, uint32_t address);
  void advance(uint32_t seconds) { write_register(0, read_register(0, 0) + seconds); }
  uint64_t cycles() const { return cycles_; }

 private:
  struct Lane {
    FramePorts frames;
    MemoryPort memory;
  };
  void drive();
  void sample();
  bool ports_idle() const;

  SimConfig config_;
  Random random_;
  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vmc_lanes> top_;
  std::vector<Lane> lanes_;
  uint64_t cycles_ = 0;
};

}  // namespace warpcache::rtl
