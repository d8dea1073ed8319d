// SPDX-License-Identifier: Apache-2.0
//
// Reclaimers that empty segments side by side, for a device, where one block of threads cannot free
// memory as fast as a hundred fill it. Maintenance has one leader, which decides; a evacuator is a
// reclaimer with a worker group of its own (on a device: another block) that empties the segments
// it is given. On the host there are no evacuators, and the leader does it all.
//
// Leader and evacuators talk through words in memory. A evacuator that has not begun yet, because
// its block has found no place, is given nothing: nobody waits for it.
#pragma once

#include <cstdint>

#include "store/reclaim/reclaim.h"

namespace warpcache::store {

class Evacuator {
 public:
  // What `core` points to outlives it. `counters` may be others' as well.
  WC_HD Evacuator(const Core& core, ThreadCounters* counters)
      : reclaimer_(core, &thread_, &worker_group) {
    thread_.counters = counters;
  }

  // --- The leader's

  WC_HD bool is_ready(uint32_t launch_number) const {
    return load_acquire(&ready_) == launch_number;
  }
  // REQUIRES: it is ready, and has done what it was given before.
  WC_HD void give(SegmentId id, const KeepRule& rule) {
    id_ = id;
    rule_ = rule;
    store_release(&ordered_, load_relaxed(&ordered_) + 1);
  }
  // Waits until it has done that, and says how it went.
  WC_HD Emptied wait() const {
    const uint32_t ordered = load_relaxed(&ordered_);
    for (uint32_t round = 0; load_acquire(&done_) != ordered; ++round) detail::wait_round(round);
    return result_;
  }
  // REQUIRES: it is doing nothing.
  WC_HD bool seal_own(SegmentId id) { return reclaimer_.seal_own(id); }
  WC_HD void seal_all() { reclaimer_.seal_all(); }
  WC_HD uint64_t copied_bytes() const { return reclaimer_.copied_bytes(); }

  // --- The evacuator's

  // Does what it is given until `last_ended` is `launch_number`, which is another number each time.
  WC_HD void serve(uint32_t launch_number, const uint32_t* last_ended) {
    store_release(&ready_, launch_number);
    for (uint32_t round = 0; load_acquire(last_ended) != launch_number; ++round) {
      const uint32_t ordered = load_acquire(&ordered_);
      if (ordered == load_relaxed(&done_)) {
        detail::wait_round(round);
        continue;
      }
      result_ = reclaimer_.empty_segment(id_, rule_, false);
      store_release(&done_, ordered);
      round = 0;
    }
    worker_group.stop();
  }

  WorkerGroup worker_group;  // mustered by the block before it serves

 private:
  ThreadContext thread_;
  Reclaimer reclaimer_;
  SegmentId id_ = kNoSegment;
  KeepRule rule_;
  Emptied result_ = Emptied::kDone;
  uint32_t ordered_ = 0;  // orders given, by the leader
  uint32_t done_ = 0;     // and done, by the evacuator
  uint32_t ready_ = 0;    // the launch_number that it has begun, by the evacuator
};

// Segments that are emptied at the same time, the leader's own among them.
inline constexpr uint32_t kEvacuationsMax = 16;

// How many evacuators are worth their place: each keeps segments open, and needs a fresh one now
// and then.
WC_HD constexpr uint32_t evacuators_for(uint32_t segments, uint32_t most) {
  constexpr uint32_t kSegmentsPerEvacuator = 128;
  const uint32_t evacuators = segments / kSegmentsPerEvacuator;
  return evacuators < most ? evacuators : most;
}

struct Evacuators {
  Evacuator* list = nullptr;
  uint32_t count = 0;          // of evacuators, at most kEvacuationsMax - 1
  uint32_t launch_number = 0;  // this time of work; another number each time
  uint32_t last_ended = 0;     // the last that has ended

  // How many of the evacuators have begun, those first. REQUIRES: the leader.
  WC_HD uint32_t ready(Evacuator** begun) const {
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (list[i].is_ready(launch_number)) begun[found++] = &list[i];
    }
    return found;
  }
  // Sends all evacuators home, those that come later too.
  WC_HD void stop() { store_release(&last_ended, launch_number); }
};

}  // namespace warpcache::store
