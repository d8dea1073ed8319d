// SPDX-License-Identifier: Apache-2.0
//
// Pins keep memory readable beyond a batch, to send a large value from where it lies. A pin is
// counted on the item's segment (of a chain: its first, the rest goes with it) and holds neither
// the key nor an epoch: the key may be replaced, its other neighbours move, and the segment waits
// in limbo. What is pinned is bounded, since slow clients hold it.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "store/layout/core.h"

namespace warpcache::store {

inline constexpr uint32_t kPinnedShareMax = 4;  // a quarter of the memory

// What must be pinned to be sent may take all of that; what could be copied as well takes half.
enum class PinNeed : uint8_t { kMust, kMay };

// Whether what is pinned has reached its bound. (The last pin may pass it, by its own item.)
WC_HD inline bool pins_exhausted(const Core& core) {
  const Shared& shared = *core.shared;
  const uint32_t limit = load_relaxed(&shared.segment_limit) / kPinnedShareMax;
  return load_relaxed(&shared.pinned_segments) >= limit;
}

// The segment's number is the pin; the same item may be pinned often.
WC_HD inline uint32_t pin_item(const Core& core, const Item& item, PinNeed need) {
  Shared& shared = *core.shared;
  const uint32_t share = need == PinNeed::kMust ? kPinnedShareMax : 2 * kPinnedShareMax;
  const SegmentId id = core.segment_of(&item);
  SegmentEntry& entry = core.segment(id);
  const uint32_t length = load_relaxed(&entry.chain_length);
  if (fetch_add(&entry.pins, 1) != 0) return id;
  const uint32_t before = fetch_add(&shared.pinned_segments, length);
  if (before < load_relaxed(&shared.segment_limit) / share) return id;
  // Others may have pinned the segment since; then it stays counted and this pin is as good as
  // theirs.
  if (fetch_sub(&entry.pins, 1) == 1) fetch_sub(&shared.pinned_segments, length);
  return kNoSegment;
}

WC_HD inline void unpin_item(const Core& core, uint32_t pin) {
  SegmentEntry& entry = core.segment(pin);
  const uint32_t length =
      load_relaxed(&entry.chain_length);  // before the segment can be freed and used anew
  const uint32_t pins = fetch_sub(&entry.pins, 1);
  WC_ASSERT(pins != 0);
  if (pins == 1) fetch_sub(&core.shared->pinned_segments, length);
}

}  // namespace warpcache::store
