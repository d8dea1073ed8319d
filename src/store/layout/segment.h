// SPDX-License-Identifier: Apache-2.0
//
// What is known of a segment, outside the segment itself. The table has an entry for every segment
// of the arena.
//
//   absent    beyond the memory limit; its pages are given back to the system
//   free      handed out next
//   open      a lane appends to it
//   young     sealed, in the young generation's queue
//   main      sealed, in the main generation's queue
//   chain     part of one large item or of a reservation; the head of a published one is in a
//   generation's queue limbo     unlinked; free once every batch that could have seen it has ended
//   and no pin holds it index     holds sets
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
  kCount
};

inline constexpr uint32_t kNeverExpires = 0xffffffff;  // of deadline and min_expiry

// 64 bytes: one cache line. Words that several threads use go through base/atomic.h.
struct alignas(64) SegmentEntry {
  uint32_t state;  // SegmentState; changed under the segment lock or by the only owner
  uint32_t used;   // bytes handed out; written by the lane's holder, constant once sealed
  uint32_t
      live;  // bytes of items that the index points to; of a chain: the whole item's, in its head
  uint32_t
      deadline;  // all its items are dead from this second on; kNeverExpires: some item never dies
  uint32_t min_expiry;    // no item expires before this second; kNeverExpires: none expires
  uint32_t pins;          // of a chain: in its head
  uint32_t chain_next;    // the chain's next segment; kNoSegment: the last
  uint32_t chain_length;  // segments, in the head; 1 for segments that are no chain
  uint32_t queue_older;   // neighbours in the queue that the state implies
  uint32_t queue_newer;
  uint64_t epoch;       // of the last sealing or unlinking: see epoch.h
  uint32_t generation;  // Generation of an open or chain segment, for when it is sealed
  uint32_t chain_head;  // of a chain's segments: the first
  uint32_t reserved[2];

  WC_HD SegmentState load_state() const { return static_cast<SegmentState>(load_acquire(&state)); }
  WC_HD void store_state(SegmentState value) {
    store_release(&state, static_cast<uint32_t>(value));
  }

  // Takes an item's expiry into account. May be called for any item of the segment at any time; a
  // raise is never lost, so a deadline that has passed means that every item has expired.
  WC_HD void note_expiry(uint32_t expiry) {
    const uint32_t end = expiry == 0 ? kNeverExpires : expiry;
    raise_to(&deadline, end);
    lower_to(&min_expiry, end);
  }
};
static_assert(sizeof(SegmentEntry) == 64);
static_assert(std::is_trivially_copyable_v<SegmentEntry>);

enum class Generation : uint32_t { kYoung, kMain };

// Segments in the order in which they were sealed. Guarded by the segment lock.
struct SegmentQueue {
  SegmentId oldest;
  SegmentId newest;
  uint32_t segments;  // chains count with all their segments
};

}  // namespace warpcache::store
