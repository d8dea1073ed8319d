// SPDX-License-Identifier: Apache-2.0
//
// Counts of the request stages, one instance for each engine thread. The owner adds with plain
// relaxed stores and anyone may read: requests share no counter. The names are those of memcached's
// `stats`.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/hd.h"

namespace warpcache::request {

enum class Counter : uint8_t {
  kCmdGet,
  kCmdSet,
  kCmdTouch,
  kCmdMeta,
  kGetHits,
  kGetMisses,
  kGetExpired,
  kGetFlushed,
  kDeleteMisses,
  kDeleteHits,
  kIncrMisses,
  kIncrHits,
  kDecrMisses,
  kDecrHits,
  kCasMisses,
  kCasHits,
  kCasBadval,
  kTouchHits,
  kTouchMisses,
  kStoreTooLarge,
  kStoreNoMemory,
  kLargeMissed,  // hits answered as misses, because too much was pinned
  kCount,
};

struct Counters {
  uint64_t value[static_cast<int>(Counter::kCount)] = {};

  // REQUIRES: called by the owning thread. On a device: by any thread of the block that owns them,
  // up to 2^32 - 1.
  WC_HD __attribute__((always_inline)) void add(Counter counter, uint32_t amount = 1) {
    uint64_t* word = &value[static_cast<int>(counter)];
#if defined(__CUDA_ARCH__)
    atomicAdd(reinterpret_cast<unsigned int*>(word), amount);
#else
    store_relaxed(word, load_relaxed(word) + amount);
#endif
  }
  WC_HD uint64_t read(Counter counter) const {
    return load_relaxed(&value[static_cast<int>(counter)]);
  }
};

}  // namespace warpcache::request
