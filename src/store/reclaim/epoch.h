// SPDX-License-Identifier: Apache-2.0
//
// When may memory be used again? Every reader of items (a batch, any thread, a block of a kernel)
// owns a slot. It writes the current epoch there before its first look at the index, and 0 when it
// is done; an idle reader is at 0 and holds nothing back. A thread that unlinks memory draws a
// ticket afterwards. Memory with ticket t can be seen only by readers whose slot shows an epoch of
// at most t.
//
// Why this is enough: a reader writes its slot and then reads the index; the other thread unlinks,
// draws the ticket and then reads the slots. All four are in one total order (seq_cst). Either the
// other thread sees the slot, or the reader sees the unlinking.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/hd.h"

namespace warpcache::store {

inline constexpr uint64_t kEpochIdle = 0;
inline constexpr uint64_t kEpochFirst = 1;

struct alignas(64) EpochSlot {
  uint64_t epoch;  // kEpochIdle, or the epoch at which its owner entered
  uint32_t taken;  // 1 while a reader owns it
  uint32_t reserved[13];
};
static_assert(sizeof(EpochSlot) == 64);

// An epoch that has just ended is safe: it only holds back more. One fence stands between the write
// of the slot and the first read of the index.
WC_HD inline void enter_epoch(EpochSlot* slot, uint64_t* current) {
#if defined(__CUDA_ARCH__)
  store_relaxed(&slot->epoch, load_relaxed(current));
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
#else
  exchange_seq_cst(&slot->epoch, load_seq_cst(current));
  fence_after_rmw();
#endif
}

WC_HD inline void leave_epoch(EpochSlot* slot) { store_release(&slot->epoch, kEpochIdle); }

// REQUIRES: what the ticket stands for has been unlinked.
WC_HD inline uint64_t draw_ticket(uint64_t* current) {
  const uint64_t ticket = fetch_add_seq_cst(current, 1);
  fence_after_rmw();
  return ticket;
}

// The lowest epoch of the readers that are inside, or UINT64_MAX: no reader sees memory with a
// lower ticket. Reads every `step`th slot from `first` on, so that several threads can share the
// work; each of them must know that the ticket was drawn.
WC_HD inline uint64_t oldest_epoch(const EpochSlot* slots, uint32_t count, uint32_t first,
                                   uint32_t step) {
  uint64_t oldest = UINT64_MAX;
#if defined(__CUDA_ARCH__)
  // There are hundreds of slots: relaxed loads after one fence do not wait for each other.
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
#pragma unroll 8
  for (uint32_t i = first; i < count; i += step) {
    const uint64_t epoch = load_relaxed(&slots[i].epoch);
    if (epoch != kEpochIdle && epoch < oldest) oldest = epoch;
  }
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
#else
  for (uint32_t i = first; i < count; i += step) {
    const uint64_t epoch = load_seq_cst(&slots[i].epoch);
    if (epoch != kEpochIdle && epoch < oldest) oldest = epoch;
  }
#endif
  return oldest;
}

}  // namespace warpcache::store
