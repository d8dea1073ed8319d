// SPDX-License-Identifier: Apache-2.0
//
// When may memory be used again? Every reader of items (a batch, any thread, a foreign kernel) owns
// a slot, in which it writes the current epoch before its first look at the index and 0 when it is
// done; idle readers are at 0 and hold nothing. Who unlinks memory draws a ticket afterwards.
// Memory with ticket t can be seen only by readers whose slot shows an epoch of at most t.
//
// Why: entering writes the slot, then reads the index; drawing a ticket follows the unlinking, then
// reads the slots; all four in one total order (seq_cst). Either the ticket's owner sees the slot,
// or the reader sees the unlinking.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/hd.h"

namespace warpcache::store {

inline constexpr uint64_t kEpochIdle = 0;
inline constexpr uint64_t kEpochFirst = 1;

struct alignas(64) EpochSlot {
  uint64_t epoch;  // kEpochIdle or the epoch at which its owner entered
  uint32_t taken;  // 1 while a reader owns it
  uint32_t reserved[13];
};
static_assert(sizeof(EpochSlot) == 64);

// An epoch that has just passed will do: it only holds back more. Between the slot and the index
// stands one fence.
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

// The lowest epoch among the readers that are inside, or UINT64_MAX: memory with a ticket below it
// is unseen. Of the slots every `step`th from `first` on are looked at: several threads that share
// them, each of which knows that the ticket was drawn, find it together.
WC_HD inline uint64_t oldest_epoch(const EpochSlot* slots, uint32_t count, uint32_t first,
                                   uint32_t step) {
  uint64_t oldest = UINT64_MAX;
#if defined(__CUDA_ARCH__)
  // Hundreds of slots: the loads must not wait for each other.
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
