// SPDX-License-Identifier: Apache-2.0
//
// How many segments a store may have, and what maintenance does with segments beyond the memory
// limit.
#pragma once

#include <cstdint>

#include "store/log/free_segments.h"

namespace warpcache::store {

// Free segments that are reserved for the leader: one for each generation that it copies to.
inline constexpr uint32_t kLeaderReserve = 2;

// The least number of segments that a store works with.
WC_HD constexpr uint32_t segments_min(uint32_t index_segments) { return index_segments + 8; }

// Below this many segments a store does not evict ahead: see Maintainer::evict_ahead().
inline constexpr uint32_t kEvictAheadSegmentsMin = 256;

// Maintainer::set_target() accepts `segments`.
WC_HD inline bool is_possible_target(const Core& core, uint32_t segments) {
  return segments <= core.shared->segments_max &&
         segments >= segments_min(load_relaxed(&core.shared->index_segments));
}

namespace detail {

// Segments that one step removes from the limit, or looks at to add them. It takes some tens of
// microseconds: requests may wait for the segment lock meanwhile.
inline constexpr uint32_t kShrunkAtOnce = 16;
inline constexpr uint32_t kGrownAtOnce = 1024;

// Lowers segment_top over absent segments, a few in one call. REQUIRES: the segment lock is held.
WC_HD inline void lower_segment_top(const Core& core) {
  uint32_t top = core.shared->segment_top;
  for (uint32_t i = 0; i < 2 * kShrunkAtOnce && top > 1; ++i, --top) {
    if (core.segment(top - 1).load_state() != SegmentState::kAbsent) break;
  }
  store_relaxed(&core.shared->segment_top, top);
}

// Gives the pages of a segment beyond the limit back, where the system can take them.
WC_HD inline void drop_pages(const Core& core, SegmentId id) {
#if !defined(__CUDA_ARCH__)
  const Shared& shared = *core.shared;
  if (shared.drop_pages != nullptr) shared.drop_pages(shared.drop_pages_context, id);
#else
  (void)core;
  (void)id;
#endif
}

}  // namespace detail

}  // namespace warpcache::store
