// SPDX-License-Identifier: Apache-2.0
//
// Victim survey. Maintenance scans the segments before it picks one to reclaim. With W workers,
// worker i scans the segments i, i+W, i+2W, ... and merges what it finds into the shared result.
// The result does not depend on W, with one exception: a scan ends at the first dead segment, and
// several workers scan some segments after it too.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "store/index/index_write.h"
#include "store/layout/core.h"
#include "store/reclaim/worker_share.h"

namespace warpcache::store {

// The result of a survey. kNoSegment: there is no such segment.
struct Survey {
  SegmentId dead = kNoSegment;      // the first with nothing alive in it
  SegmentId wasteful = kNoSegment;  // the one that compaction gains most from
  uint32_t waste = 0;               // dead bytes in it
  uint64_t waste_bytes = 0;         // dead bytes in all segments
  SegmentId outdated = kNoSegment;  // something in it has expired or been flushed
  SegmentId flushed = kNoSegment;   // sealed before the last flush
  bool expired = false;             // an item has expired, also in an open segment
  bool in_use = false;              // some are sealed, but a batch may still write to them
};

// A survey while workers do it. A place is a position in the order of the scan.
struct SurveyTask {
  // The range to scan, set by the leader: `count` segments from `start` on; after the last of
  // [first, end) comes `first` again.
  SegmentId first = 0;
  SegmentId end = 0;
  SegmentId start = 0;
  uint32_t count = 0;
  uint32_t now = 0;
  uint64_t oldest_inside = 0;  // see oldest_epoch()
  uint64_t flush_ticket = 0;   // sealed at or before it: holds flushed items

  // Results.
  static constexpr uint32_t kNowhere = UINT32_MAX;
  uint32_t dead = kNowhere;  // place
  uint64_t wasteful = 0;     // waste << 32 | ~place
  uint64_t waste_bytes = 0;
  uint32_t outdated = 0;  // place + 1; the last
  uint32_t flushed = 0;   // likewise
  uint32_t expired = 0;
  uint32_t in_use = 0;

  WC_HD SegmentId id_at(uint32_t place) const {
    const uint32_t to_end = end - start;
    return place < to_end ? start + place : first + (place - to_end);
  }
};

// Other segments that waste as much as the one that a survey has found.
struct CollectTask {
  static constexpr uint32_t kMax = 16;

  uint32_t waste_min = 0;  // bytes; set by the leader
  uint32_t count = 0;      // found, possibly above kMax
  SegmentId found[kMax];
};

namespace detail {

// Bytes that emptying a segment gains. The free end of a segment that was sealed when an item did
// not fit is no gain: copied items leave such ends too.
WC_HD inline uint32_t waste_of(const Core& core, const SegmentEntry& entry) {
  const uint32_t used = load_relaxed(&entry.used);
  return (used < core.segment_size() / 2 ? core.segment_size() : used) - load_acquire(&entry.live);
}

// Looks at one segment. REQUIRES: no other worker uses `found`.
WC_HD inline void survey_segment(const Core& core, const SurveyTask& task, uint32_t place,
                                 SurveyTask& found) {
  const SegmentId id = task.id_at(place);
  const SegmentEntry& entry = core.segment(id);
  const SegmentState state = entry.load_state();
  const bool chain = state == SegmentState::kChain;
  const bool sealed = state == SegmentState::kYoung || state == SegmentState::kMain;
  if ((sealed || chain || state == SegmentState::kOpen) && load_acquire(&entry.live) != 0 &&
      load_relaxed(&entry.min_expiry) <= task.now) {
    found.expired = 1;
  }
  if (!sealed && !chain) return;
  if (chain) {
    // Only maintenance frees chains, so a published one can be looked at.
    const Item* item = chain_item(core, id);
    if (!is_alive(core, *item, task.now)) found.dead = place;
    return;
  }
  if (load_relaxed(&entry.epoch) >= task.oldest_inside) {
    found.in_use = 1;
    return;
  }
  const uint32_t live = load_acquire(&entry.live);
  if (live == 0 || load_acquire(&entry.deadline) <= task.now) found.dead = place;
  const uint32_t waste = waste_of(core, entry);
  found.waste_bytes += waste;
  const uint64_t wasteful = uint64_t{waste} << 32 | (UINT32_MAX - place);
  if (wasteful > found.wasteful) found.wasteful = wasteful;
  const bool flushed = load_relaxed(&entry.epoch) <= task.flush_ticket;
  if (flushed) found.flushed = place + 1;
  if (load_relaxed(&entry.min_expiry) <= task.now || flushed) found.outdated = place + 1;
}

}  // namespace detail

// The share of one worker.
WC_HD inline void survey_share(const Core& core, SurveyTask& task, const Share& share) {
  SurveyTask own;
  for (uint32_t place = share.worker; place < task.count && own.dead == SurveyTask::kNowhere;
       place += share.workers) {
    detail::survey_segment(core, task, place, own);
  }
  if (own.dead != SurveyTask::kNowhere) lower_to(&task.dead, own.dead);
  if (own.wasteful != 0) raise_to(&task.wasteful, own.wasteful);
  if (own.waste_bytes != 0) fetch_add(&task.waste_bytes, own.waste_bytes);
  if (own.outdated != 0) raise_to(&task.outdated, own.outdated);
  if (own.flushed != 0) raise_to(&task.flushed, own.flushed);
  if (own.expired != 0) store_relaxed(&task.expired, 1);
  if (own.in_use != 0) store_relaxed(&task.in_use, 1);
}

// The share of one worker in the search for other segments, over the same places.
WC_HD inline void collect_share(const Core& core, const SurveyTask& task, CollectTask& more,
                                const Share& share) {
  for (uint32_t place = share.worker; place < task.count; place += share.workers) {
    const SegmentId id = task.id_at(place);
    const SegmentEntry& entry = core.segment(id);
    const SegmentState state = entry.load_state();
    if (state != SegmentState::kYoung && state != SegmentState::kMain) continue;
    if (load_relaxed(&entry.epoch) >= task.oldest_inside) continue;
    if (detail::waste_of(core, entry) < more.waste_min) continue;
    const uint32_t number = fetch_add(&more.count, 1);
    if (number < CollectTask::kMax) more.found[number] = id;
  }
}

// The merged result of all workers.
WC_HD inline Survey surveyed(const SurveyTask& task) {
  Survey survey;
  if (task.dead != SurveyTask::kNowhere) survey.dead = task.id_at(task.dead);
  if (task.wasteful != 0) {
    survey.wasteful = task.id_at(UINT32_MAX - static_cast<uint32_t>(task.wasteful));
    survey.waste = static_cast<uint32_t>(task.wasteful >> 32);
  }
  survey.waste_bytes = task.waste_bytes;
  if (task.outdated != 0) survey.outdated = task.id_at(task.outdated - 1);
  if (task.flushed != 0) survey.flushed = task.id_at(task.flushed - 1);
  survey.expired = task.expired != 0;
  survey.in_use = task.in_use != 0;
  return survey;
}

}  // namespace warpcache::store
