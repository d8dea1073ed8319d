// SPDX-License-Identifier: Apache-2.0
//
// Divides a stream of bytes into random pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

namespace warpcache::model {

class Cuts {
 public:
  // Seed 0: one piece.
  explicit Cuts(uint64_t seed) : random_(static_cast<uint32_t>(seed)), cuts_(seed != 0) {}

  bool active() const { return cuts_; }

  // The size of the next piece of `available` bytes.
  size_t next(size_t available) {
    if (!cuts_) return available;
    const size_t most = std::max<size_t>(available, 1);
    switch (random_() % 4) {
      case 0:
        return most > 4096 ? most / 8 : 1 + random_() % std::min<size_t>(most, 16);
      case 1:
        return 1 + random_() % most;
      default:
        return most;
    }
  }

 private:
  std::minstd_rand random_;
  bool cuts_;
};

}  // namespace warpcache::model
