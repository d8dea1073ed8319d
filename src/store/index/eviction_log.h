// SPDX-License-Identifier: Apache-2.0
//
// How a device reports evictions to the host while somebody watches them (Observer). The kernel
// that evicts an item copies its header and key to a ring in pinned memory, under the lock of the
// item's pair, and waits for nobody: where the ring is full the eviction is only counted. The host
// takes the records in order (cuda/eviction_watch.h).
#pragma once

#if defined(__CUDA_ARCH__)
#include <cuda/atomic>
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/atomic.h"
#include "base/hd.h"
#include "base/mem.h"
#include "store/layout/core.h"

namespace warpcache::store {

inline constexpr uint32_t kEvictionRecords = 8192;  // that wait for the host at most

struct EvictionRecord {
  Item item;         // only the header; the key follows, as Item::key() expects it
  uint8_t key[256];  // item.key_size bytes; what follows them in 16 bytes is of the value
  uint32_t now;      // server second
  uint32_t number;   // of the record, counted from 1; written last
  uint32_t unused[2];
};
static_assert(std::is_trivially_copyable_v<EvictionRecord>);
static_assert(offsetof(EvictionRecord, key) == sizeof(Item));
static_assert(sizeof(EvictionRecord) == 304);

// In device memory. Counters may wrap.
struct EvictionLog {
  EvictionRecord* records;  // kEvictionRecords in pinned memory: record n is at (n - 1) % that
  alignas(64) uint32_t reserved;  // records that kernels write or have written
  uint32_t missed;                // evictions for which there was no place
  alignas(64) uint32_t taken;     // records that the host has read: written by the copy engine
};

// Null: nobody watches.
WC_HD inline EvictionLog* eviction_log(const Core& core) {
  return reinterpret_cast<EvictionLog*>(load_relaxed(&core.shared->eviction_log));
}

#if defined(__CUDA_ARCH__)
// The lock of the item's pair is held. Not inlined: nobody watches most of the time, and then the
// kernels need no registers for it.
__device__ __noinline__ inline void log_eviction(EvictionLog* log, const Item* item, uint32_t now) {
  uint32_t before = 0;
  do {
    before = load_relaxed(&log->reserved);
    // Signed: `taken` may be of a later moment than `reserved`, which the exchange notices.
    const auto waiting = static_cast<int32_t>(before - load_acquire(&log->taken));
    if (waiting >= static_cast<int32_t>(kEvictionRecords)) {
      add_relaxed(&log->missed, 1u);
      return;
    }
  } while (!compare_exchange(&log->reserved, before, before + 1));
  EvictionRecord& record = log->records[before % kEvictionRecords];
  // Items begin and end at multiples of 16 bytes.
  mem_copy_granules(&record.item, item,
                    (sizeof(Item) + item->key_size + kItemGranule - 1) / kItemGranule);
  record.now = now;
  using Word = ::cuda::atomic_ref<uint32_t, ::cuda::thread_scope_system>;
  Word(record.number).store(before + 1, ::cuda::memory_order_release);
}
#endif

}  // namespace warpcache::store
