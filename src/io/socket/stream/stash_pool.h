// SPDX-License-Identifier: Apache-2.0
//
// Memory for input that is not consumed yet: buffers of 256 bytes to a whole chunk, in powers of
// two. Idle connections hold none. One pool per worker; owner's thread only.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/assert.h"
#include "io/transport.h"

namespace warpcache::io {

// `data` is null if there is no buffer. Does not own it: StashPool::give() takes it back.
struct Stash {
  uint8_t* data = nullptr;
  uint32_t size = 0;
  uint32_t capacity = 0;
};

class StashPool {
 public:
  // The most unused memory that is kept for reuse.
  static constexpr uint64_t kSpareBytesMax = uint64_t{1} << 20;
  // Buffers of the smallest size that are allocated at the start and never freed, so that small
  // requests are kept when the system refuses memory.
  static constexpr uint32_t kReserve = 256;

  // `bytes_max`: the most bytes in use; 0: no bound except one chunk per connection.
  // Throws std::bad_alloc.
  explicit StashPool(uint64_t bytes_max);
  StashPool(const StashPool&) = delete;
  StashPool& operator=(const StashPool&) = delete;
  // REQUIRES: all buffers were given back.
  ~StashPool();

  // Returns an empty stash of at least `capacity` bytes; data is null if it would exceed the bound.
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

  // The start of an unused buffer: a link to the next one.
  struct Spare {
    Spare* next;
  };

  static uint32_t class_of(uint32_t capacity);
  void keep(void* buffer, uint32_t which);
  void free_spares();

  uint64_t bytes_max_;
  std::atomic<uint64_t> bytes_in_use_{0};
  uint64_t spare_bytes_ = 0;
  uint32_t smallest_spares_ = 0;  // spares of kSmallest bytes
  std::array<Spare*, kClasses> spares_{};
};

}  // namespace warpcache::io
