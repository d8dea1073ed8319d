// SPDX-License-Identifier: Apache-2.0
//
// Copies of items outside of the store, such as those of the NIC cache. Their owner makes them from
// live items, under the lock of the item's pair. The store says when one must not be read any more,
// before the change that ends it can be seen:
//
//   drop_copy()     an item is replaced, changed in place or removed; under the lock of its pair
//   flush_copies()  before the store's flush generation is raised: copies of items of another
//                   generation must not be read
//   tell_clock()    before the store's clock advances
//
// So whoever has seen a change in the store finds no copy from before it.
#pragma once

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

inline void tell_clock(const Core& core, uint32_t now) {
  const CopyHooks& copies = core.shared->copies;
  if (copies.clock != nullptr) copies.clock(copies.context, now);
}

}  // namespace warpcache::store
