// SPDX-License-Identifier: Apache-2.0
//
// The host behind the NIC cache: the CPU engine, which takes frames in the order in which they
// come, one after the other and each after a time of its own, and whose replies take another time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "frames.h"
#include "nic_sim.h"
#include "reference.h"

namespace warpcache::rtl {

// A TCP segment to the server's port with one request, which the model of the host executes and
// does not answer. What the segment's other fields say does not matter here.
inline std::string tcp_frame(const std::string& payload) {
  std::string frame = request_frame(payload);
  frame[23] = 6;
  put16(frame, 24, 0);
  put16(frame, 24, checksum_of(sum_of(frame.substr(14, 20), 0)));
  // 20 bytes of TCP's header where UDP's and memcached's were.
  frame.insert(50, 4, '\0');
  frame[46] = 0x50;
  put16(frame, 16, static_cast<uint32_t>(frame.size() - 14));
  put16(frame, 24, 0);
  put16(frame, 24, checksum_of(sum_of(frame.substr(14, 20), 0)));
  return frame;
}
inline bool is_tcp(const std::string& frame) {
  return frame.size() > 54 && frame[12] == 8 && frame[13] == 0 && frame[14] == 0x45 &&
         frame[23] == 6 && frame[46] == 0x50;
}

// What the engine answers to a frame, of TCP's segments nothing.
inline std::vector<std::string> answers_of(Reference& engine, const std::string& frame) {
  if (!is_tcp(frame)) return engine.run({frame});
  engine.run({request_frame(frame.substr(54))});
  return {};
}

class NicHost {
 public:
  NicHost(uint32_t seed, uint32_t delay_max) : random_(seed), delay_max_(delay_max) {}
  Reference& engine() { return engine_; }
  // To be called after each step of the simulation.
  void step(NicSim& sim) {
    for (std::string& frame : sim.host().take()) come_.push_back({later(sim), std::move(frame)});
    while (!come_.empty() && come_.front().at <= sim.cycles()) {
      for (std::string& reply : answers_of(engine_, come_.front().bytes))
        go_.push_back({later(sim), std::move(reply)});
      come_.pop_front();
      ++taken_;
    }
    while (!go_.empty() && go_.front().at <= sim.cycles()) {
      sim.host().send(go_.front().bytes, false);
      go_.pop_front();
    }
  }
  bool idle() const { return come_.empty() && go_.empty(); }
  uint64_t taken() const { return taken_; }

 private:
  struct Waiting {
    uint64_t at;  // cycle
    std::string bytes;
  };
  uint64_t later(const NicSim& sim) { return sim.cycles() + random_.below(delay_max_ + 1); }

  Reference engine_;
  Random random_;
  uint32_t delay_max_;
  std::deque<Waiting> come_;
  std::deque<Waiting> go_;
  uint64_t taken_ = 0;
};

// Until neither has anything to do; false if that does not come.
inline bool settle(NicSim& sim, NicHost& host) {
  constexpr uint64_t kCyclesMax = 4'000'000;
  constexpr int kQuietCycles =
      400;  // longer than a frame in the first blocks, or the slowest memory
  int quiet = 0;
  for (uint64_t i = 0; i < kCyclesMax; ++i) {
    sim.step();
    host.step(sim);
    quiet = sim.idle() && host.idle() ? quiet + 1 : 0;
    if (quiet == kQuietCycles) return sim.wire().between_frames() && sim.host().between_frames();
  }
  return false;
}

// A second passes for both.
inline void advance(NicSim& sim, NicHost& host, uint32_t seconds) {
  for (uint32_t i = 0; i < seconds; ++i) sim.tick();
  host.engine().advance(seconds);
}

struct NicOptions {
  std::vector<std::string> files;
  std::vector<std::string> skipped;
  uint64_t count = 20'000;
  uint32_t hold = 0;
  uint32_t seed = 1;
  uint32_t delay = 2000;  // cycles that the host takes, at most, for each of its two steps
};

int play_packets(const NicOptions& options);
int run_operations(const NicOptions& options);
int run_damaged(const NicOptions& options);
int measure_cycles(const NicOptions& options);

}  // namespace warpcache::rtl
