// SPDX-License-Identifier: Apache-2.0
//
// How often something was seen of late: a count-min sketch of bytes. An answer is never too low
// since the last ageing, and seldom too high. All counts are halved after kWindow observations for
// each entry, so what was frequent once is forgotten. For one thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace warpcache {

class FrequencySketch {
 public:
  // For about `entries` different things at a time.
  explicit FrequencySketch(uint64_t entries)
      : counts_(std::bit_ceil(std::max<uint64_t>(entries, 1) * kCellsPerEntry)),
        window_(std::max<uint64_t>(entries, 1) * kWindow) {}

  // Notes what has this hash. Returns how often it was seen, this time included.
  uint32_t add(uint64_t hash) {
    if (++added_ > window_) age();
    uint32_t least = kMost;
    for (uint32_t row = 0; row < kRows; ++row) least = std::min<uint32_t>(least, at(hash, row));
    if (least == kMost) return least;
    // What others have raised stays: only the lowest counts say something of this one.
    for (uint32_t row = 0; row < kRows; ++row) {
      uint8_t& count = at(hash, row);
      if (count == least) count = static_cast<uint8_t>(least + 1);
    }
    return least + 1;
  }

 private:
  static constexpr uint32_t kRows = 4;
  static constexpr uint64_t kCellsPerEntry = 8;
  static constexpr uint64_t kWindow = 8;
  static constexpr uint32_t kMost = 255;

  uint8_t& at(uint64_t hash, uint32_t row) {
    const uint64_t mixed = (hash + row * 0x9e3779b97f4a7c15ULL) * 0xd6e8feb86659fd93ULL;
    return counts_[(mixed ^ mixed >> 32) & (counts_.size() - 1)];
  }
  void age() {
    for (uint8_t& count : counts_) count = static_cast<uint8_t>(count / 2);
    added_ = 1;
  }

  std::vector<uint8_t> counts_;
  uint64_t window_;
  uint64_t added_ = 0;
};

}  // namespace warpcache
