// SPDX-License-Identifier: Apache-2.0
//
// A pin keeps memory readable beyond a batch, so that a large value can be sent without a copy. It
// is counted on the item's segment (of a chain: on its first one, which stands for all) and holds
// neither the key nor an epoch. The key may be replaced and its neighbours may move; the segment
// then stays retired. The pinned amount is bounded, since slow clients keep pins for long.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "store/layout/core.h"

namespace warpcache::store {

inline constexpr uint32_t kPinnedShareMax = 4;  // a quarter of the memory

// kMust may take the whole bound: the value cannot be sent otherwise. kMay takes half of it: the
// value could also be copied.
enum class PinNeed : uint8_t { kMust, kMay };

// The pinned amount has reached its bound. (The last pin may exceed it by its own item.)
WC_HD inline bool pins_exhausted(const Core& core) {
  const Shared& shared = *core.shared;
  const uint32_t limit = load_relaxed(&shared.segment_limit) / kPinnedShareMax;
  return load_relaxed(&shared.pinned_segments) >= limit;
}

// The pin is the segment's number; an item may be pinned several times.
WC_HD inline uint32_t pin_item(const Core& core, const Item& item, PinNeed need) {
  Shared& shared = *core.shared;
  const uint32_t share = need == PinNeed::kMust ? kPinnedShareMax : 2 * kPinnedShareMax;
  const SegmentId id = core.segment_of(&item);
  SegmentEntry& entry = core.segment(id);
  const uint32_t length = load_relaxed(&entry.chain_length);
  if (fetch_add(&entry.pins, 1) != 0) return id;
  const uint32_t before = fetch_add(&shared.pinned_segments, length);
  if (before < load_relaxed(&shared.segment_limit) / share) return id;
  // Another thread may have pinned the segment since; then it stays counted, and that pin gives the
  // count back.
  if (fetch_sub(&entry.pins, 1) == 1) fetch_sub(&shared.pinned_segments, length);
  return kNoSegment;
}

// Bytes of the store that a pin of the item keeps from being reused: its segments, and the end of a
// chain, which lies in a segment of ends.
WC_HD inline uint64_t pinned_by_item(const Core& core, const Item& item) {
  const SegmentEntry& entry = core.segment(core.segment_of(&item));
  const uint64_t segments = uint64_t{load_relaxed(&entry.chain_length)} << core.segment_shift;
  const uint64_t bytes = item_footprint(item);
  return bytes > segments ? bytes : segments;
}

WC_HD inline void unpin_item(const Core& core, uint32_t pin) {
  SegmentEntry& entry = core.segment(pin);
  const uint32_t length =
      load_relaxed(&entry.chain_length);  // read before the segment can be freed and reused
  const uint32_t pins = fetch_sub(&entry.pins, 1);
  WC_ASSERT(pins != 0);
  if (pins == 1) fetch_sub(&core.shared->pinned_segments, length);
}

}  // namespace warpcache::store
