// SPDX-License-Identifier: Apache-2.0
//
// What belongs to one thread that uses the store (on a device: to one block).
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/hd.h"
#include "store/layout/item.h"
#include "store/reclaim/epoch.h"

namespace warpcache::store {

enum class StoreCounter : uint32_t {
  kTotalItems,  // published ever
  kItems,       // in the index now; a thread's share may be negative
  kBytes,       // bytes of these, with header and key; likewise
  kEvicted,     // live items dropped for free space
  kEvictedUnfetched,
  kEvictedNonzero,  // evicted items that had an expiry
  kEvictedInPair,   // part of kEvicted: because the pair and its overflow sets were full
  kExpired,         // dead items found and removed: expired or flushed
  kExpiredUnfetched,
  kReclaimed,   // dead items replaced by a new one
  kMovedItems,  // copied by maintenance
  kMovedBytes,
  kSplits,
  kOverflowSets,   // in use
  kHitsOnSpilled,  // not in the home set
  kCount,
};

// Written by the owner with plain stores (on a device: by the threads of a block), read by anyone.
struct alignas(64) ThreadCounters {
  uint64_t value[static_cast<uint32_t>(StoreCounter::kCount)];

  // REQUIRES: called by the owner. `amount` may be a negative number's two's complement.
  WC_HD void add(StoreCounter counter, uint64_t amount) {
#if defined(__CUDA_ARCH__)
    atomicAdd(reinterpret_cast<unsigned long long*>(&value[static_cast<uint32_t>(counter)]),
              static_cast<unsigned long long>(amount));
#else
    add_owned(&value[static_cast<uint32_t>(counter)], amount);
#endif
  }
  WC_HD uint64_t read(StoreCounter counter) const {
    return load_relaxed(&value[static_cast<uint32_t>(counter)]);
  }
};

// Made by Store::register_thread(); used by one thread at a time.
struct ThreadContext {
  EpochSlot* slot = nullptr;
  ThreadCounters* counters = nullptr;
  uint32_t index = 0;
  uint32_t append_point = 0;
  uint64_t cas_next = 0;     // next_cas() gives the ids from here ...
  uint64_t cas_end = 0;      // ... up to before this one
  int32_t new_items = 0;     // keys added minus keys removed, not yet reported to the index
  Item* prepared = nullptr;  // space taken in advance: allocate() uses it where it fits
  bool prepared_holds_value = false;
};

}  // namespace warpcache::store
