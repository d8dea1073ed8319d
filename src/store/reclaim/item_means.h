// SPDX-License-Identifier: Apache-2.0
//
// What the items of a store are like on average, as eviction has to know it.
#pragma once

#include <cstdint>

#include "store/index/split.h"

namespace warpcache::store {

// Bytes of memory that an item takes. 0: nobody knows.
WC_HD inline uint32_t mean_item(const Core& core) {
  const Shared& shared = *core.shared;
  const uint64_t items = reported_items(load_relaxed(&shared.items));
  const uint64_t segments =
      uint64_t{load_relaxed(&shared.young.segments)} + load_relaxed(&shared.main.segments);
  const uint64_t mean = items == 0 ? 0 : (segments << core.segment_shift) / items;
  return static_cast<uint32_t>(mean < UINT32_MAX ? mean : UINT32_MAX);
}

// The ghosts that a set keeps: as many as it has items. Where items are large the index is emptier
// than its least size, and would remember much more than the store could hold.
WC_HD inline uint32_t ghosts_a_set(const Core& core) {
  const uint64_t items = reported_items(load_relaxed(&core.shared->items));
  const uint64_t pairs = load_relaxed(&core.shared->pair_count);
  const uint64_t mean = (items + pairs) / (2 * pairs);
  if (mean == 0) return 1;
  return static_cast<uint32_t>(mean < kGhostsMax ? mean : kGhostsMax);
}

}  // namespace warpcache::store
