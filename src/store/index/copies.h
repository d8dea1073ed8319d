// SPDX-License-Identifier: Apache-2.0
//
// Copies of items outside of the store, such as those of the NIC cache. Their owner makes them from
// live items, under the lock of the item's pair. The store says when one must not be read any more,
// before the change that ends it can be seen:
//
//   drop_copy()     an item is replaced, changed in place or removed; under the lock of its pair
//   flush_copies()  before the store's flush generation is raised: copies of items of another
//                   generation must not be read
//   report_clock()    before the store's clock advances
//
// So whoever has seen a change in the store finds no copy from before it.
//
// A store in a device's memory cannot call its owner. There the host takes the copies of all keys
// away that a batch may change, before the batch begins (cuda/copy_guard.h); of what the device
// does by itself, flushes and the clock come from the host, which calls the hooks before, and
// evictions are reported to the host one by one:
//
//   report_eviction()  before an item with a copy is evicted; returns when there is none any more
#pragma once

#if defined(__CUDA_ARCH__)
#include <cuda/atomic>
#endif

#include <cstdint>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/hd.h"
#include "store/layout/core.h"

namespace warpcache::store {

WC_HD inline void drop_copy(const Core& core, const Item& item) {
#if !defined(__CUDA_ARCH__)
  const CopyHooks& copies = core.shared->copies;
  if (WC_UNLIKELY(copies.drop != nullptr)) copies.drop(copies.context, item.key());
#else
  (void)core;
  (void)item;
#endif
}

WC_HD inline void flush_copies(const Core& core, uint32_t generation) {
#if !defined(__CUDA_ARCH__)
  const CopyHooks& copies = core.shared->copies;
  if (copies.flush != nullptr) copies.flush(copies.context, generation);
#else
  (void)core;
  (void)generation;
#endif
}

#if defined(__CUDA_ARCH__)
// The lock of the item's pair is held. The host answers while it waits for any kernel
// (CudaStore::answer_evictions()).
__device__ inline void report_eviction(const Core& core, const Item& item) {
  if ((item.load_bits() & kItemCopied) == 0) return;
  const SpinGuard guard(&core.shared->evicted_mail_lock);
  EvictedMail& mail = *core.shared->evicted_mail;
  mail.key_size = item.key_size;
  for (uint32_t i = 0; i < item.key_size; ++i) mail.key[i] = item.key_data()[i];
  using Word = ::cuda::atomic_ref<uint32_t, ::cuda::thread_scope_system>;
  uint32_t number = Word(mail.sent).load(::cuda::memory_order_relaxed) + 1;
  if (number == EvictedMail::kClosed) number = 0;
  Word(mail.sent).store(number, ::cuda::memory_order_release);
  uint32_t answered = 0;
  for (uint32_t tries = 0; answered != number && answered != EvictedMail::kClosed; ++tries) {
    if (tries != 0) spin_wait(tries);
    answered = Word(mail.answered).load(::cuda::memory_order_acquire);
  }
}
#endif

inline void report_clock(const Core& core, uint32_t now) {
  const CopyHooks& copies = core.shared->copies;
  if (copies.clock != nullptr) copies.clock(copies.context, now);
}

}  // namespace warpcache::store
