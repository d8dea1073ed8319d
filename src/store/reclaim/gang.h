// SPDX-License-Identifier: Apache-2.0
//
// Reclaimers that empty segments side by side, for a device, where one block of threads cannot free
// memory as fast as a hundred fill it. Maintenance has one leader, which decides; a hand is a
// reclaimer with a crew of its own (on a device: another block) that empties the segments it is
// given. On the host there are no hands, and the leader does it all.
//
// Leader and hands talk through words in memory. A hand that has not begun yet, because its block
// has found no place, is given nothing: nobody waits for it.
#pragma once

#include <cstdint>

#include "store/reclaim/reclaim.h"

namespace warpcache::store {

class Hand {
 public:
  // What `core` points to outlives it. `counters` may be others' as well.
  WC_HD Hand(const Core& core, ThreadCounters* counters) : reclaimer_(core, &thread_, &crew) {
    thread_.counters = counters;
  }

  // --- The leader's

  WC_HD bool is_ready(uint32_t shift) const { return load_acquire(&ready_) == shift; }
  // REQUIRES: it is ready, and has done what it was given before.
  WC_HD void give(SegmentId id, const KeepRule& rule) {
    id_ = id;
    rule_ = rule;
    store_release(&ordered_, load_relaxed(&ordered_) + 1);
  }
  // Waits until it has done that, and says how it went.
  WC_HD Emptied wait() const {
    const uint32_t ordered = load_relaxed(&ordered_);
    for (uint32_t turn = 0; load_acquire(&done_) != ordered; ++turn) detail::wait_for_crew(turn);
    return result_;
  }
  // REQUIRES: it is doing nothing.
  WC_HD bool seal_own(SegmentId id) { return reclaimer_.seal_own(id); }
  WC_HD void seal_all() { reclaimer_.seal_all(); }
  WC_HD uint64_t copied_bytes() const { return reclaimer_.copied_bytes(); }

  // --- The hand's

  // Does what it is given until `over` is `shift`, which is another number each time.
  WC_HD void serve(uint32_t shift, const uint32_t* over) {
    store_release(&ready_, shift);
    for (uint32_t turn = 0; load_acquire(over) != shift; ++turn) {
      const uint32_t ordered = load_acquire(&ordered_);
      if (ordered == load_relaxed(&done_)) {
        detail::wait_for_crew(turn);
        continue;
      }
      result_ = reclaimer_.empty_segment(id_, rule_, false);
      store_release(&done_, ordered);
      turn = 0;
    }
    crew.dismiss();
  }

  Crew crew;  // mustered by the block before it serves

 private:
  ThreadContext thread_;
  Reclaimer reclaimer_;
  SegmentId id_ = kNoSegment;
  KeepRule rule_;
  Emptied result_ = Emptied::kDone;
  uint32_t ordered_ = 0;  // orders given, by the leader
  uint32_t done_ = 0;     // and done, by the hand
  uint32_t ready_ = 0;    // the shift that it has begun, by the hand
};

// Segments that are emptied at the same time, the leader's own among them.
inline constexpr uint32_t kGangMax = 16;

// How many hands are worth their place: each keeps segments open, and needs a fresh one now and
// then.
WC_HD constexpr uint32_t hands_for(uint32_t segments, uint32_t most) {
  constexpr uint32_t kSegmentsPerHand = 128;
  const uint32_t hands = segments / kSegmentsPerHand;
  return hands < most ? hands : most;
}

struct Gang {
  Hand* hands = nullptr;
  uint32_t count = 0;  // of hands, at most kGangMax - 1
  uint32_t shift = 0;  // this time of work; another number each time
  uint32_t over = 0;   // the last that has ended

  // How many of the hands have begun, those first. REQUIRES: the leader.
  WC_HD uint32_t ready(Hand** begun) const {
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (hands[i].is_ready(shift)) begun[found++] = &hands[i];
    }
    return found;
  }
  // Sends all hands home, those that come later too.
  WC_HD void dismiss() { store_release(&over, shift); }
};

}  // namespace warpcache::store
