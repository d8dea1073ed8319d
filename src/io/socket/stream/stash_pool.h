// SPDX-License-Identifier: Apache-2.0
//
// Memory for input that could not be consumed yet: buffers in powers of two from 256 bytes to a
// whole chunk. Idle connections hold none. One pool per worker; owner's thread only.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/assert.h"
#include "io/transport.h"

namespace warpcache::io {

// `data` is null when nothing is held. Not owning: it goes back by StashPool::give().
struct Stash {
  uint8_t* data = nullptr;
  uint32_t size = 0;
  uint32_t capacity = 0;
};

class StashPool {
 public:
  // Memory kept for reuse beyond what is in use.
  static constexpr uint64_t kSpareBytesMax = uint64_t{1} << 20;

  // `bytes_max` bounds what is held at a time; 0: one chunk per connection is the bound.
  explicit StashPool(uint64_t bytes_max)
      : bytes_max_(bytes_max != 0 ? bytes_max : std::numeric_limits<uint64_t>::max()) {}
  StashPool(const StashPool&) = delete;
  StashPool& operator=(const StashPool&) = delete;
  // REQUIRES: everything was given back.
  ~StashPool();

  // An empty stash of at least `capacity` bytes; data is null over the bound.
  // REQUIRES: 1 <= capacity <= kChunkBytesMax.
  Stash take(uint32_t capacity);

  // Takes the buffer back and clears `stash`.
  void give(Stash& stash);

  // Any thread.
  uint64_t bytes_in_use() const { return bytes_in_use_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kSmallest = 256;
  static constexpr uint32_t kClasses =
      static_cast<uint32_t>(std::countr_zero(kChunkBytesMax) - std::countr_zero(kSmallest)) + 1;
  static_assert(std::has_single_bit(kChunkBytesMax));

  // A spare buffer begins with the link to the next.
  struct Spare {
    Spare* next;
  };

  static uint32_t class_of(uint32_t capacity);

  uint64_t bytes_max_;
  std::atomic<uint64_t> bytes_in_use_{0};
  uint64_t spare_bytes_ = 0;
  std::array<Spare*, kClasses> spares_{};
};

}  // namespace warpcache::io
