// SPDX-License-Identifier: Apache-2.0
#include "ports.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shape.h"

namespace warpcache::rtl {

namespace {

constexpr size_t kReadsMax = 64;

uint64_t latency(const SimConfig& config, Random& random) {
  return config.latency_min + random.below(config.latency_max - config.latency_min + 1);
}

}  // namespace

void OfferCheck::check(bool valid, bool ready, uint64_t data, uint64_t more, const char* name) {
  if (kept_ && (!valid || data != data_ || more != more_)) {
    std::fprintf(stderr, "%s has taken an offer back\n", name);
    std::abort();
  }
  kept_ = valid && !ready;
  data_ = data;
  more_ = more;
}

const FramePorts::Inputs& FramePorts::drive(const SimConfig& config, Random& random) {
  // A beat that is offered stays offered.
  inputs_.rx_valid = !in_.empty() && (rx_offered_ || !random.holds(config));
  if (inputs_.rx_valid) {
    const Frame& frame = in_.front();
    const size_t left = frame.bytes.size() - in_at_;
    const size_t bytes = std::min<size_t>(left, 8);
    inputs_.rx_data = 0;
    std::memcpy(&inputs_.rx_data, frame.bytes.data() + in_at_, bytes);
    inputs_.rx_bytes = static_cast<uint8_t>(bytes);
    inputs_.rx_last = bytes == left;
    inputs_.rx_error = bytes == left && frame.damaged;
    rx_offered_ = true;
  }
  inputs_.tx_ready = !random.holds(config);
  return inputs_;
}

void FramePorts::sample(const Outputs& outputs, uint64_t cycle) {
  tx_.check(outputs.tx_valid, inputs_.tx_ready, outputs.tx_data,
            uint64_t{outputs.tx_bytes} | uint64_t{outputs.tx_last} << 8, "tx");
  if (inputs_.rx_valid && outputs.rx_ready) {
    rx_offered_ = false;
    if (in_at_ == 0) in_began_ = cycle;
    in_at_ += 8;
    if (in_at_ >= in_.front().bytes.size()) {
      in_.pop_front();
      in_at_ = 0;
    }
  }
  if (outputs.tx_valid && inputs_.tx_ready) {
    if (frame_out_.empty()) out_began_ = cycle;
    char bytes[8];
    std::memcpy(bytes, &outputs.tx_data, 8);
    frame_out_.append(bytes, outputs.tx_bytes);
    if (outputs.tx_last) {
      out_.push_back(std::move(frame_out_));
      frame_out_.clear();
    }
  }
}

void MemoryPort::Free::operator()(uint64_t* memory) const { std::free(memory); }

// Zeros that cost nothing before they are written.
MemoryPort::MemoryPort()
    : memory_(static_cast<uint64_t*>(std::calloc(kMemoryWords, sizeof(uint64_t)))) {
  if (memory_ == nullptr) std::abort();
}

const MemoryPort::Inputs& MemoryPort::drive(const SimConfig& config, Random& random,
                                            uint64_t cycle) {
  inputs_.ar_ready = reads_.size() < kReadsMax && !random.holds(config);
  inputs_.aw_ready = writes_.size() + filling_.size() < kReadsMax && !random.holds(config);
  inputs_.w_ready = !filling_.empty() && !random.holds(config);
  read_chosen_ = -1;
  inputs_.r_valid = false;
  if (!reads_.empty()) {
    const auto first = random.below(static_cast<uint32_t>(reads_.size()));
    for (size_t i = 0; i < reads_.size(); ++i) {
      const size_t at = first + i < reads_.size() ? first + i : first + i - reads_.size();
      if (reads_[at].ready > cycle) continue;
      read_chosen_ = static_cast<int>(at);
      inputs_.r_valid = true;
      inputs_.r_tag = reads_[at].tag;
      std::memcpy(inputs_.r_data, memory_.get() + 2 * uint64_t{reads_[at].address}, 16);
      break;
    }
  }
  write_chosen_ = -1;
  inputs_.b_valid = false;
  for (size_t i = 0; i < writes_.size(); ++i) {
    if (writes_[i].ready > cycle) continue;
    write_chosen_ = static_cast<int>(i);
    inputs_.b_valid = true;
    inputs_.b_tag = writes_[i].tag;
    break;
  }
  return inputs_;
}

void MemoryPort::sample(const Outputs& outputs, const SimConfig& config, Random& random,
                        uint64_t cycle) {
  ar_.check(outputs.ar_valid, inputs_.ar_ready, outputs.ar_addr,
            uint64_t{outputs.ar_len} | uint64_t{outputs.ar_tag} << 8, "ar");
  aw_.check(outputs.aw_valid, inputs_.aw_ready, outputs.aw_addr,
            uint64_t{outputs.aw_len} | uint64_t{outputs.aw_tag} << 8, "aw");
  w_.check(outputs.w_valid, inputs_.w_ready, outputs.w_data, outputs.w_last, "w");
  asked_ = outputs.aw_valid;
  if ((outputs.ar_valid && 2 * (uint64_t{outputs.ar_addr} + outputs.ar_len) > kMemoryWords) ||
      (outputs.aw_valid && uint64_t{outputs.aw_addr} + outputs.aw_len > kMemoryWords)) {
    std::fprintf(stderr, "a burst reaches behind the memory\n");
    std::abort();
  }
  if (read_chosen_ >= 0) {
    Read& read = reads_[static_cast<size_t>(read_chosen_)];
    ++read.address;
    if (--read.left == 0) reads_.erase(reads_.begin() + read_chosen_);
  }
  // The bytes of a write appear only now: a read that was allowed before would see the old ones.
  if (write_chosen_ >= 0) {
    const Write& write = writes_[static_cast<size_t>(write_chosen_)];
    std::copy(write.beats.begin(), write.beats.end(), memory_.get() + write.address);
    writes_.erase(writes_.begin() + write_chosen_);
  }
  if (outputs.w_valid && inputs_.w_ready) {
    Write& write = filling_.front();
    write.beats.push_back(outputs.w_data);
    const bool last = write.beats.size() == write.length;
    if (last != outputs.w_last) {
      std::fprintf(stderr, "w_last is wrong\n");
      std::abort();
    }
    if (last) {
      write.ready = cycle + latency(config, random);
      writes_.push_back(std::move(write));
      filling_.pop_front();
    }
  }
  if (outputs.ar_valid && inputs_.ar_ready) {
    reads_.push_back(
        {cycle + latency(config, random), outputs.ar_addr, outputs.ar_tag, outputs.ar_len});
  }
  if (outputs.aw_valid && inputs_.aw_ready) {
    filling_.push_back({0, outputs.aw_addr, outputs.aw_tag, outputs.aw_len, {}});
  }
}

}  // namespace warpcache::rtl
