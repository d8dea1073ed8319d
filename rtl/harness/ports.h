// SPDX-License-Identifier: Apache-2.0
//
// What stands at the ports of a core in simulation: frames that come and go, and a memory. Each
// cycle first drives the core's inputs, then samples what the core has taken and given.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  bool holds(const SimConfig& config) {
    return config.hold_percent != 0 && below(100) < config.hold_percent;
  }

 private:
  uint64_t state_;
};

// Ends the program where an output stream takes an offer back: a beat that is offered stays,
// unchanged, until it is taken.
class OfferCheck {
 public:
  void check(bool valid, bool ready, uint64_t data, uint64_t more, const char* name);

 private:
  bool kept_ = false;  // what is offered was not taken in the cycle before
  uint64_t data_ = 0;
  uint64_t more_ = 0;
};

class FramePorts {
 public:
  struct Inputs {
    bool rx_valid = false;
    uint64_t rx_data = 0;
    uint8_t rx_bytes = 0;
    bool rx_last = false;
    bool rx_error = false;
    bool tx_ready = false;
  };
  struct Outputs {
    bool rx_ready;
    bool tx_valid;
    uint64_t tx_data;
    uint8_t tx_bytes;
    bool tx_last;
  };
  void send(const std::string& frame, bool damaged) { in_.push_back({frame, damaged}); }
  uint64_t queued() const { return in_.size(); }
  bool between_frames() const { return frame_out_.empty(); }
  std::vector<std::string> take() { return std::exchange(out_, {}); }
  const Inputs& drive(const SimConfig& config, Random& random);
  void sample(const Outputs& outputs, uint64_t cycle);
  // Cycles at which the last frame in began and the last frame out began.
  uint64_t in_began() const { return in_began_; }
  uint64_t out_began() const { return out_began_; }

 private:
  struct Frame {
    std::string bytes;
    bool damaged;
  };
  Inputs inputs_;
  uint64_t in_began_ = 0;
  uint64_t out_began_ = 0;
  std::deque<Frame> in_;
  size_t in_at_ = 0;
  bool rx_offered_ = false;
  std::string frame_out_;
  std::vector<std::string> out_;
  OfferCheck tx_;
};

// Bursts are answered out of order, interleaved and after a latency that varies.
class MemoryPort {
 public:
  struct Inputs {
    bool ar_ready = false;
    bool r_valid = false;
    uint8_t r_tag = 0;
    uint64_t r_data[2] = {};
    bool aw_ready = false;
    bool w_ready = false;
    bool b_valid = false;
    uint8_t b_tag = 0;
  };
  struct Outputs {
    bool ar_valid;
    uint32_t ar_addr;  // in beats of 16 bytes
    uint8_t ar_len;
    uint8_t ar_tag;
    bool aw_valid;
    uint32_t aw_addr;  // in beats of 8 bytes
    uint8_t aw_len;
    uint8_t aw_tag;
    bool w_valid;
    uint64_t w_data;
    bool w_last;
  };
  MemoryPort();
  const Inputs& drive(const SimConfig& config, Random& random, uint64_t cycle);
  void sample(const Outputs& outputs, const SimConfig& config, Random& random, uint64_t cycle);
  bool idle() const { return reads_.empty() && writes_.empty() && filling_.empty() && !asked_; }

 private:
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
  struct Free {
    void operator()(uint64_t* memory) const;
  };
  std::unique_ptr<uint64_t[], Free> memory_;
  Inputs inputs_;
  std::vector<Read> reads_;
  std::deque<Write> filling_;  // writes whose data have not all come
  std::vector<Write> writes_;
  bool asked_ = false;  // the core asks for a write
  int read_chosen_ = -1;
  int write_chosen_ = -1;
  OfferCheck ar_, aw_, w_;
};

}  // namespace warpcache::rtl
