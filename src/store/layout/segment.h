// SPDX-License-Identifier: Apache-2.0
//
// What is known of a segment, outside the segment itself. The table has an entry for every segment
// of the arena. States:
//
//   absent     beyond the memory limit; its pages are given back to the system
//   free       may be opened
//   open       an append point: items are written at its end
//   young      sealed, in the queue of the young generation
//   main       sealed, in the queue of the main generation
//   chain      the head of a published large item; in the queue of a generation
//   staged     another segment of a chain, or part of a reservation
//   retired    unlinked; becomes free when no batch can see it and no pin holds it
//   tails      holds the ends of chains: see log/tails.h
//   held       full, and values are still being received into it: see log/reservation.h
//   index      holds sets
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/atomic.h"
#include "base/hd.h"

namespace warpcache::store {

using SegmentId = uint32_t;
inline constexpr SegmentId kNoSegment = 0;  // the first segment always belongs to the index

enum class SegmentState : uint32_t {
  kAbsent,
  kFree,
  kOpen,
  kYoung,
  kMain,
  kStaged,
  kChain,
  kRetired,
  kIndex,
  kTails,
  kHeld,
  kCount
};

inline constexpr uint32_t kNeverExpires = 0xffffffff;  // of deadline and min_expiry

// 64 bytes: one cache line. Words that several threads use go through base/atomic.h.
struct alignas(64) SegmentEntry {
  uint32_t state;  // SegmentState; changed under the segment lock or by the only owner
  uint32_t
      used;  // bytes allocated; written by the holder of the append point, constant once sealed
  uint32_t live;          // bytes of items in the index; of a chain: of the whole item, in its head
  uint32_t deadline;      // all items are dead from this second on; kNeverExpires: some never die
  uint32_t min_expiry;    // no item expires before it; kNeverExpires: none expires
  uint32_t pins;          // of a chain: in its head
  uint32_t chain_next;    // the next segment of the chain; kNoSegment: this is the last
  uint32_t chain_length;  // segments, in the head of a chain; 1 for others
  uint32_t queue_older;   // neighbours in the queue that the state says
  uint32_t queue_newer;
  uint64_t epoch;       // of the last sealing or unlinking: see epoch.h
  uint32_t generation;  // Generation that an open or chain segment joins when it is sealed
  uint32_t chain_head;  // the first segment of the chain
  uint64_t pages;  // of a chain's head: its tail; 0: none. Of `tails`: those in use, one bit each.
                   // Of `open` and `held`: reservations in it

  WC_HD SegmentState load_state() const { return static_cast<SegmentState>(load_acquire(&state)); }
  WC_HD void store_state(SegmentState value) {
    store_release(&state, static_cast<uint32_t>(value));
  }

  // Adjusts deadline and min_expiry to an item's expiry. May be called for any item of the segment
  // at any time. A raise is never lost, so a deadline in the past means that every item has
  // expired.
  WC_HD void note_expiry(uint32_t expiry) {
    const uint32_t end = expiry == 0 ? kNeverExpires : expiry;
    raise_to(&deadline, end);
    lower_to(&min_expiry, end);
  }
};
static_assert(sizeof(SegmentEntry) == 64);
static_assert(std::is_trivially_copyable_v<SegmentEntry>);

// Where the tail of a chain lies. 0: nowhere.
inline constexpr uint32_t kTailFirstShift = 8;
WC_HD inline uint64_t make_tail(SegmentId segment, uint32_t first_page, uint32_t pages) {
  return uint64_t{segment} << 32 | first_page << kTailFirstShift | pages;
}
WC_HD inline SegmentId tail_segment(uint64_t tail) { return static_cast<SegmentId>(tail >> 32); }

enum class Generation : uint32_t { kYoung, kMain };

// Segments in the order in which they were sealed. Guarded by the segment lock.
struct SegmentQueue {
  SegmentId oldest;
  SegmentId newest;
  uint32_t segments;  // each segment of a chain counts
};

}  // namespace warpcache::store
