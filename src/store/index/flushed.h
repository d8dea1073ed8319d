// SPDX-License-Identifier: Apache-2.0
//
// Whether an item has been flushed. Each flush has a generation, one above the last; each item has
// the generation of the store when it was stored. An item of the store's own generation is alive:
// that is all that a request looks at while nothing has been flushed. For an earlier one the marks
// decide: that of flush_all, and those of the flushed prefixes. Maintenance gives such items the
// store's generation, or removes them (reclaim/sweep.h).
//
// A flush writes its mark first and raises the store's generation last. In between, a mark is of a
// later generation than the store, and what it said before still holds.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/mem.h"
#include "store/layout/core.h"

namespace warpcache::store {

// Generation `a` came after `b`.
WC_HD inline bool is_later(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) > 0; }

namespace detail {

// How often a holder of a pair's lock reads marks while flushes take effect, before it makes
// flushes wait.
inline constexpr uint32_t kFlushLooksMax = 4;

// The generation of a mark's last flush that had taken effect when the store's was `now`.
WC_HD inline uint32_t in_effect(const FlushMark& mark, uint32_t now) {
  const uint32_t last = load_acquire(&mark.generation);
  return is_later(last, now) ? load_acquire(&mark.before) : last;
}

// An item of `generation` has been flushed, when the store's generation was `now`. Apart from its
// callers, since it is rare: a kernel that contains it needs more registers everywhere. It takes no
// Core: one whose address is taken would have to lie in a kernel's local memory.
WC_HD __attribute__((noinline)) inline bool has_mark(const Shared& shared, const Item& item,
                                                     uint32_t generation, uint32_t now) {
  if (is_later(in_effect(shared.flush_mark, now), generation)) return true;
  const uint32_t count = load_acquire(&shared.flushed_prefix_count);
  WC_NO_UNROLL
  for (uint32_t i = 0; i < count; ++i) {
    const FlushedPrefix& prefix = shared.flushed_prefixes[i];
    // Text and size of a slot do not change while an item is older than its mark.
    if (!is_later(in_effect(prefix.mark, now), generation)) continue;
    if (prefix.size <= item.key_size && mem_equal(prefix.text, item.key_data(), prefix.size)) {
      return true;
    }
  }
  return false;
}

}  // namespace detail

// REQUIRES: the caller is in an epoch, or is maintenance.
WC_HD inline bool is_flushed(const Core& core, const Item& item) {
  const uint32_t generation = item.load_flush_generation();
  const uint32_t now = load_acquire(&core.shared->flush_generation);
  return generation != now && detail::has_mark(*core.shared, item, generation, now);
}

// The same for a holder of the lock of the item's pair. `now` becomes the store's generation that
// the answer holds for: an item that is made of this one is flushed by all later ones.
WC_HD inline bool is_flushed_at(const Core& core, const Item& item, uint32_t& now) {
  Shared& shared = *core.shared;
  const uint32_t generation = item.load_flush_generation();
  for (uint32_t look = 0; look < detail::kFlushLooksMax; ++look) {
    now = load_acquire(&shared.flush_generation);
    const bool flushed = generation != now && detail::has_mark(shared, item, generation, now);
    if (load_relaxed(&shared.flush_generation) == now) return flushed;
  }
  const SpinGuard flushes(&shared.flush_lock);
  now = load_relaxed(&shared.flush_generation);
  return generation != now && detail::has_mark(shared, item, generation, now);
}

}  // namespace warpcache::store
