// SPDX-License-Identifier: Apache-2.0
#include "io/socket/stream/stash_pool.h"

#include <new>

namespace warpcache::io {

StashPool::StashPool(uint64_t bytes_max)
    : bytes_max_(bytes_max != 0 ? bytes_max : std::numeric_limits<uint64_t>::max()) {
  for (uint32_t i = 0; i < kReserve; ++i) {
    void* const buffer = ::operator new(kSmallest, std::nothrow);
    if (buffer == nullptr) {
      free_spares();
      throw std::bad_alloc();
    }
    keep(buffer, 0);
  }
}

StashPool::~StashPool() {
  WC_ASSERT(bytes_in_use() == 0);
  free_spares();
}

void StashPool::free_spares() {
  for (Spare* spare : spares_) {
    while (spare != nullptr) {
      Spare* const next = spare->next;
      ::operator delete(spare);
      spare = next;
    }
  }
}

uint32_t StashPool::class_of(uint32_t capacity) {
  WC_ASSERT(capacity >= 1 && capacity <= kChunkBytesMax);
  if (capacity <= kSmallest) return 0;
  return static_cast<uint32_t>(std::bit_width(capacity - 1) - std::countr_zero(kSmallest));
}

Stash StashPool::take(uint32_t capacity) {
  const uint32_t which = class_of(capacity);
  const uint32_t bytes = kSmallest << which;
  const uint64_t in_use = bytes_in_use();
  if (in_use + bytes > bytes_max_) return {};
  Spare* spare = spares_[which];
  if (spare != nullptr) {
    spares_[which] = spare->next;
    spare_bytes_ -= bytes;
    if (which == 0) --smallest_spares_;
  } else {
    spare = static_cast<Spare*>(::operator new(bytes, std::nothrow));
    if (spare == nullptr) return {};
  }
  bytes_in_use_.store(in_use + bytes, std::memory_order_relaxed);
  return {reinterpret_cast<uint8_t*>(spare), 0, bytes};
}

void StashPool::give(Stash& stash) {
  if (stash.data == nullptr) return;
  bytes_in_use_.store(bytes_in_use() - stash.capacity, std::memory_order_relaxed);
  const uint32_t which = class_of(stash.capacity);
  const bool reserve = which == 0 && smallest_spares_ < kReserve;
  if (reserve || spare_bytes_ + stash.capacity <= kSpareBytesMax) {
    keep(stash.data, which);
  } else {
    ::operator delete(stash.data);
  }
  stash = {};
}

void StashPool::keep(void* buffer, uint32_t which) {
  spares_[which] = ::new (buffer) Spare{spares_[which]};
  spare_bytes_ += kSmallest << which;
  if (which == 0) ++smallest_spares_;
}

}  // namespace warpcache::io
