// SPDX-License-Identifier: Apache-2.0
//
// Evacuators empty segments at the same time as the leader of maintenance. A device needs them: one
// block of threads cannot free memory as fast as a hundred blocks fill it. An evacuator is a
// Reclaimer with its own worker group (on a device: in its own block); it empties the segments that
// the leader gives it. On the host there are none, and the leader does all the work.
//
// Leader and evacuators communicate through words in memory. An evacuator whose block has not
// started yet gets no work, so nobody waits for it.
#pragma once

#include <cstdint>

#include "store/reclaim/reclaim.h"

namespace warpcache::store {

class Evacuator {
 public:
  // What `core` points to outlives the evacuator. Others may use `counters` too.
  WC_HD Evacuator(const Core& core, ThreadCounters* counters)
      : reclaimer_(core, &thread_, &worker_group) {
    thread_.counters = counters;
  }

  // --- Called by the leader

  WC_HD bool is_ready(uint32_t launch_number) const {
    return load_acquire(&ready_) == launch_number;
  }
  // Gives it a segment to empty. REQUIRES: is_ready(), and wait() has returned for the segment
  // before.
  WC_HD void give(SegmentId id, const KeepRule& rule) {
    id_ = id;
    rule_ = rule;
    store_release(&ordered_, load_relaxed(&ordered_) + 1);
  }
  // Waits until the segment is emptied, and returns the outcome.
  WC_HD Emptied wait() const {
    const uint32_t ordered = load_relaxed(&ordered_);
    for (uint32_t round = 0; load_acquire(&done_) != ordered; ++round) detail::wait_round(round);
    return result_;
  }
  // REQUIRES: it has no work.
  WC_HD bool seal_own(SegmentId id) { return reclaimer_.seal_own(id); }
  WC_HD void seal_all() { reclaimer_.seal_all(); }
  WC_HD uint64_t copied_bytes() const { return reclaimer_.copied_bytes(); }

  // --- Called by the evacuator's block

  // Empties the segments that it is given until `last_ended` is `launch_number`. Each launch has a
  // number of its own.
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

  WorkerGroup worker_group;  // started by its block before serve()

 private:
  ThreadContext thread_;
  Reclaimer reclaimer_;
  SegmentId id_ = kNoSegment;
  KeepRule rule_;
  Emptied result_ = Emptied::kDone;
  uint32_t ordered_ = 0;  // segments given, counted by the leader
  uint32_t done_ = 0;     // segments emptied, counted by the evacuator
  uint32_t ready_ = 0;    // the launch in which it has started to serve
};

// Segments that are emptied at the same time, one of them by the leader.
inline constexpr uint32_t kEvacuationsMax = 16;

// The number of evacuators for a store. Each keeps segments open and sometimes needs a free one, so
// a small store has few.
WC_HD constexpr uint32_t evacuators_for(uint32_t segments, uint32_t most) {
  constexpr uint32_t kSegmentsPerEvacuator = 128;
  const uint32_t evacuators = segments / kSegmentsPerEvacuator;
  return evacuators < most ? evacuators : most;
}

struct Evacuators {
  Evacuator* list = nullptr;
  uint32_t count = 0;          // evacuators, at most kEvacuationsMax - 1
  uint32_t launch_number = 0;  // of this launch of maintenance; the next one has another
  uint32_t last_ended = 0;     // number of the last launch that has ended

  // Lists the evacuators that have started in this launch. Returns how many. Leader only.
  WC_HD uint32_t ready(Evacuator** begun) const {
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (list[i].is_ready(launch_number)) begun[found++] = &list[i];
    }
    return found;
  }
  // Ends serve() of all evacuators, and of those whose blocks start later.
  WC_HD void stop() { store_release(&last_ended, launch_number); }
};

}  // namespace warpcache::store
