// SPDX-License-Identifier: Apache-2.0
//
// The core in simulation, with a model of its memory: bursts are answered out of order, interleaved
// and after a latency that varies.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

class VerilatedContext;
class Vmc_core;

namespace warpcache::rtl {

struct SimConfig {
  uint32_t latency_min = 30;  // cycles
  uint32_t latency_max = 100;
  uint32_t hold_percent = 0;  // cycles in which a stream is held back, each stream on its own
  uint32_t seed = 1;
  uint16_t udp_port = 11211;
};

// xorshift64*
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1d;
  }
  // Below `bound`.
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>((next() >> 32) * bound >> 32); }

 private:
  uint64_t state_;
};

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
  void send(const std::string& frame, bool damaged = false) { in_.push_back({frame, damaged}); }
  uint64_t frames_queued() const { return in_.size(); }
  void step();
  // Until nothing is left to do; false after `cycles_max` cycles: the core hangs.
  bool run_until_idle(uint64_t cycles_max = 2'000'000);
  // Frames that have come out since the last call.
  std::vector<std::string> take() { return std::exchange(out_, {}); }

  void write_register(uint32_t address, uint32_t value);
  uint32_t read_register(uint32_t address);
  uint32_t counter(CoreCounter which) { return read_register(16 + which); }
  void set_next_cas(uint64_t cas);
  void advance(uint32_t seconds) { write_register(0, read_register(0) + seconds); }
  uint64_t cycles() const { return cycles_; }
  // Cycles at which the last frame in began and the last frame out began.
  uint64_t in_began() const { return in_began_; }
  uint64_t out_began() const { return out_began_; }

 private:
  struct Frame {
    std::string bytes;
    bool damaged;
  };
  struct Read {
    uint64_t ready;
    uint32_t address;
    uint8_t tag;
    uint8_t left;
  };
  struct Write {
    uint64_t ready;
    uint32_t address;
    uint8_t tag;
    uint8_t length;
    std::vector<uint64_t> beats;
  };
  void drive();
  void check_offers();
  void sample();
  bool holds() { return config_.hold_percent != 0 && random_.below(100) < config_.hold_percent; }
  uint64_t latency() {
    return config_.latency_min + random_.below(config_.latency_max - config_.latency_min + 1);
  }

  SimConfig config_;
  Random random_;
  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vmc_core> core_;
  uint64_t* memory_ = nullptr;
  uint64_t cycles_ = 0;
  uint64_t in_began_ = 0;
  uint64_t out_began_ = 0;
  std::deque<Frame> in_;
  size_t in_at_ = 0;
  bool rx_offered_ = false;
  std::string frame_out_;
  std::vector<std::string> out_;
  std::vector<Read> reads_;
  std::deque<Write> filling_;  // writes whose data have not all come
  std::vector<Write> writes_;
  // What an output stream offers, and whether it was not taken in the cycle before.
  struct Offer {
    bool kept = false;
    uint64_t data = 0;
    uint64_t more = 0;
  };
  void check_offer(Offer& offer, bool valid, bool ready, uint64_t data, uint64_t more,
                   const char* name);
  Offer offers_[4];
  int read_chosen_ = -1;
  int write_chosen_ = -1;
};

}  // namespace warpcache::rtl
