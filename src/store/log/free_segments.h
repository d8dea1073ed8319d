// SPDX-License-Identifier: Apache-2.0
//
// The queues of segments, and which segments are free. The segment lock guards all of it. A thread
// may take it while it holds the lock of a pair or of an append point, never the other way round.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "store/layout/core.h"

namespace warpcache::store {

// --- Queues. REQUIRES for each: the segment lock is held.

WC_HD inline void queue_push(const Core& core, SegmentQueue& queue, SegmentId id) {
  SegmentEntry& entry = core.segment(id);
  entry.queue_older = queue.newest;
  entry.queue_newer = kNoSegment;
  if (queue.newest != kNoSegment) core.segment(queue.newest).queue_newer = id;
  if (queue.oldest == kNoSegment) queue.oldest = id;
  queue.newest = id;
  store_relaxed(&queue.segments, queue.segments + entry.chain_length);
}

WC_HD inline void queue_remove(const Core& core, SegmentQueue& queue, SegmentId id) {
  SegmentEntry& entry = core.segment(id);
  if (entry.queue_older != kNoSegment) {
    core.segment(entry.queue_older).queue_newer = entry.queue_newer;
  } else {
    queue.oldest = entry.queue_newer;
  }
  if (entry.queue_newer != kNoSegment) {
    core.segment(entry.queue_newer).queue_older = entry.queue_older;
  } else {
    queue.newest = entry.queue_older;
  }
  store_relaxed(&queue.segments, queue.segments - entry.chain_length);
}

// The queue of a sealed segment or of a published chain's head.
WC_HD inline SegmentQueue& queue_of(const Core& core, SegmentId id) {
  const bool young = core.segment(id).generation == static_cast<uint32_t>(Generation::kYoung);
  return young ? core.shared->young : core.shared->main;
}

// --- Free segments

namespace detail {

// REQUIRES: the segment lock is held.
WC_HD inline void mark_free(const Core& core, SegmentId id) {
  Shared& shared = *core.shared;
  core.free_words[id / kFreeWordSegments] |= uint64_t{1} << (id % kFreeWordSegments);
  core.segment(id).store_state(SegmentState::kFree);
  uint32_t& top = core.is_near(id) ? shared.free_top : shared.far_free_top;
  if (id >= top) top = id + 1;
  store_relaxed(&shared.free_count, shared.free_count + 1);
}

// REQUIRES: the segment lock is held; `id` is free.
WC_HD inline void unmark_free(const Core& core, SegmentId id) {
  core.free_words[id / kFreeWordSegments] &= ~(uint64_t{1} << (id % kFreeWordSegments));
  store_relaxed(&core.shared->free_count, core.shared->free_count - 1);
}

// The highest free segment from `low` on (a multiple of kFreeWordSegments), without the one that
// the index waits for. `top`: no segment at or above it is free. REQUIRES: the segment lock is
// held. The loop is bounded by the size of the table and usually ends after one or two words.
WC_HD inline SegmentId highest_free_from(const Core& core, uint32_t low, uint32_t& top) {
  const SegmentId wanted = load_relaxed(&core.shared->segment_wanted);
  bool passed_wanted = false;
  for (uint32_t i = divided_up(top, kFreeWordSegments); i-- > low / kFreeWordSegments;) {
    uint64_t word = core.free_words[i];
    if (wanted / kFreeWordSegments == i && (word >> (wanted % kFreeWordSegments) & 1) != 0) {
      word &= ~(uint64_t{1} << (wanted % kFreeWordSegments));
      passed_wanted = true;
    }
    if (word == 0) continue;
    const SegmentId id = i * kFreeWordSegments + highest_bit(word);
    if (!passed_wanted) top = id + 1;
    return id;
  }
  if (!passed_wanted) top = low;
  return kNoSegment;
}

// The segment to take next. The index grows from the low end, so it is a high one; in a split arena
// it is one in device memory while there is any. REQUIRES: the segment lock is held.
WC_HD inline SegmentId highest_free(const Core& core) {
  Shared& shared = *core.shared;
  const SegmentId id = highest_free_from(core, 0, shared.free_top);
  if (id != kNoSegment || core.is_near(shared.segments_max - 1)) return id;
  const auto low = static_cast<uint32_t>(core.near_bytes >> core.segment_shift);
  return highest_free_from(core, low, shared.far_free_top);
}

WC_HD inline void reset_entry(SegmentEntry& entry, SegmentState state, Generation generation) {
  store_relaxed(&entry.used, 0);
  store_relaxed(&entry.live, 0);
  store_relaxed(&entry.deadline, 0);
  store_relaxed(&entry.min_expiry, kNeverExpires);
  store_relaxed(&entry.chain_next, kNoSegment);
  store_relaxed(&entry.chain_length, 1);
  store_relaxed(&entry.generation, static_cast<uint32_t>(generation));
  store_relaxed(&entry.pages, 0);
  entry.store_state(state);
}

WC_HD inline void call_maintenance(const Core& core) {
#if !defined(__CUDA_ARCH__)
  const Shared& shared = *core.shared;
  if (shared.low_on_segments != nullptr) shared.low_on_segments(shared.low_on_segments_context);
#endif
}

}  // namespace detail

}  // namespace warpcache::store
