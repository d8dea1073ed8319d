// SPDX-License-Identifier: Apache-2.0
//
// Taking segments and giving them back. The segment lock guards all of it.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "base/atomic.h"
#include "store/log/free_segments.h"
#include "store/log/tails.h"

namespace warpcache::store {

namespace detail {

// Takes the next free segment. REQUIRES: the segment lock is held; one is free.
WC_HD inline SegmentId take_one(const Core& core, SegmentState state, Generation generation) {
  const SegmentId id = highest_free(core);
  WC_ASSERT(id != kNoSegment);
  unmark_free(core, id);
  reset_entry(core.segment(id), state, generation);
  return id;
}

// Likewise, a chain; kNoSegment when too few are free.
WC_HD inline SegmentId take_locked(const Core& core, const ChainShape& shape, uint32_t reserve,
                                   SegmentState state, Generation generation) {
  Shared& shared = *core.shared;
  // The segment that the index waits for may be free, but is not given to others.
  const SegmentId wanted = load_relaxed(&shared.segment_wanted);
  const bool held_back =
      wanted != kNoSegment && core.segment(wanted).load_state() == SegmentState::kFree;
  SegmentId tail = shape.tail_pages == 0 ? kNoSegment : find_tail_segment(core, shape.tail_pages);
  const bool fresh_tail = shape.tail_pages != 0 && tail == kNoSegment;
  const uint64_t needed = uint64_t{shape.segments} + (fresh_tail ? 1 : 0);
  if (shared.free_count < needed + reserve + (held_back ? 1 : 0)) return kNoSegment;
  SegmentId first = kNoSegment;
  SegmentId last = kNoSegment;
  for (uint32_t i = 0; i < shape.segments; ++i) {
    const SegmentId id = take_one(core, state, generation);
    if (last == kNoSegment) {
      first = id;
    } else {
      store_relaxed(&core.segment(last).chain_next, id);
    }
    last = id;
    store_relaxed(&core.segment(id).chain_head, first);
  }
  store_relaxed(&core.segment(first).chain_length, shape.segments);
  if (fresh_tail) {
    tail = take_one(core, SegmentState::kTails, Generation::kYoung);
    queue_push(core, shared.tails, tail);
  }
  if (tail != kNoSegment) take_tail(core, first, tail, shape.tail_pages);
  return first;
}

}  // namespace detail

// Takes free segments, linked as a chain, and leaves at least `reserve`. Returns the first;
// kNoSegment when too few are free, then nothing is taken. The caller owns them; their state is
// `state`.
WC_HD inline SegmentId take_chain(const Core& core, const ChainShape& shape, uint32_t reserve,
                                  SegmentState state, Generation generation) {
  Shared& shared = *core.shared;
  SegmentId first = kNoSegment;
  bool low = false;
  {
    SpinGuard guard(&shared.segment_lock);
    first = detail::take_locked(core, shape, reserve, state, generation);
    low = shared.free_count < shared.low_water;
  }
  if (low || first == kNoSegment) detail::call_maintenance(core);
  return first;
}

// Likewise, one segment.
WC_HD inline SegmentId take_segment(const Core& core, uint32_t reserve, SegmentState state,
                                    Generation generation) {
  return take_chain(core, {1, 0}, reserve, state, generation);
}

// Frees a segment or chain that no reader can have seen. REQUIRES: the segment lock is held.
WC_HD inline void free_chain_locked(const Core& core, SegmentId head) {
  const uint32_t length = load_relaxed(&core.segment(head).chain_length);
  detail::free_tail(core, head);
  SegmentId id = head;
  for (uint32_t i = 0; i < length; ++i) {
    WC_ASSERT(id != kNoSegment);
    const SegmentId next = load_relaxed(&core.segment(id).chain_next);
    detail::mark_free(core, id);
    id = next;
  }
}

WC_HD inline void free_chain(const Core& core, SegmentId head) {
  SpinGuard guard(&core.shared->segment_lock);
  free_chain_locked(core, head);
}

namespace detail {

// REQUIRES: the segment lock is held; `ticket` was drawn after the last reservation of the segment
// was closed.
WC_HD inline void enqueue_sealed(const Core& core, SegmentId id, uint64_t ticket) {
  SegmentEntry& entry = core.segment(id);
  const bool young = entry.generation == static_cast<uint32_t>(Generation::kYoung);
  store_relaxed(&entry.epoch, ticket);
  queue_push(core, queue_of(core, id), id);
  entry.store_state(young ? SegmentState::kYoung : SegmentState::kMain);
}

}  // namespace detail

// Ends appending to an open segment: it joins the queue of its generation, unless reservations are
// in it: then it is held, and joins with the last of them. REQUIRES: the caller owns the segment
// (holds its append point). Maintenance does not walk it before all current batches have ended,
// since they may still write there.
WC_HD inline void seal_segment(const Core& core, SegmentId id) {
  SpinGuard guard(&core.shared->segment_lock);
  SegmentEntry& entry = core.segment(id);
  if (load_relaxed(&entry.pages) != 0) return entry.store_state(SegmentState::kHeld);
  detail::enqueue_sealed(core, id, draw_ticket(&core.shared->epoch));
}

// A published chain joins the young generation.
WC_HD inline void enqueue_chain(const Core& core, SegmentId head) {
  SegmentEntry& entry = core.segment(head);
  SpinGuard guard(&core.shared->segment_lock);
  store_relaxed(&entry.generation, static_cast<uint32_t>(Generation::kYoung));
  queue_push(core, core.shared->young, head);
  entry.store_state(SegmentState::kChain);
}

// Takes a sealed segment or chain out of its queue and retires it. REQUIRES: the index points to
// nothing in it any more, and the caller unlinked its last item or owns its reclamation.
WC_HD inline void retire(const Core& core, SegmentId head) {
  Shared& shared = *core.shared;
  SegmentEntry& entry = core.segment(head);
  store_relaxed(&entry.epoch, draw_ticket(&shared.epoch));
  SpinGuard guard(&shared.segment_lock);
  queue_remove(core, queue_of(core, head), head);
  queue_push(core, shared.retired, head);
  entry.store_state(SegmentState::kRetired);
}

}  // namespace warpcache::store
