// SPDX-License-Identifier: Apache-2.0
//
// Space for a value that arrives piece by piece, possibly over many batches: it is taken, filled,
// and then published or abandoned. The item's header and space for the key are in front. It is
//
// apart   a chain of segments that maintenance does not visit. An item above half a segment is
//         published where it lies; a smaller one is copied when it is published.
// in log  part of an append point's open segment, beside other items, and published where it lies:
//         for items of a 32nd to a half of a segment, where an append point is named. The segment
//         counts its reservations; while it has some it is not sealed, so nobody walks it and it
//         is not evicted. Each counts as a whole segment, since it may hold one by itself.
#pragma once

#include <cstdint>

#include "store/log/allocate.h"
#include "store/log/value.h"

namespace warpcache::store {

inline constexpr uint32_t kReservationsMax = 1024;
inline constexpr uint32_t kReservedShareMax = 4;  // a quarter of the memory, or a single
                                                  // reservation

// Changed under the segment lock. Any thread may take a free one; only its owner closes it.
struct Reservation {
  SegmentId head;         // kNoSegment: not in use. Written after the others
  uint32_t generation;    // changes with each use, so that an old id is not valid
  uint32_t append_point;  // in log: of the segment; kApart
  uint32_t at;            // the item's place in the segment
};

inline constexpr uint32_t kApart = UINT32_MAX;
// Of a segment: smaller items are copied. An abandoned one may leave a hole in the log, which is
// not worth the copy that a small one takes.
inline constexpr uint32_t kInLogShareMin = 32;

namespace detail {

// REQUIRES: the segment lock is held. Statistics read the number without the lock.
WC_HD inline void count_reserved(Shared& shared, uint32_t more) {
  store_relaxed(&shared.reserved_segments, shared.reserved_segments + more);
}

// The first segment of the reservation; kNoSegment if it is used up or abandoned. Takes no lock,
// because only the caller can close the reservation.
WC_HD inline SegmentId current_head(const Core& core, uint32_t id) {
  const Reservation& slot = core.reservations[id % kReservationsMax];
  const SegmentId head = load_acquire(&slot.head);
  return load_relaxed(&slot.generation) == id / kReservationsMax ? head : kNoSegment;
}

WC_HD inline const Reservation& reservation_slot(const Core& core, uint32_t id) {
  return core.reservations[id % kReservationsMax];
}

WC_HD inline bool is_in_log(const Core& core, uint32_t id) {
  return reservation_slot(core, id).append_point != kApart;
}

// Returns the same as current_head(), and ends the reservation; its space stays taken. A held
// segment joins its queue with the last of its reservations. The caller may still publish there in
// the batch that it is in.
WC_HD inline SegmentId close_reservation(const Core& core, uint32_t id) {
  const SegmentId head = current_head(core, id);
  if (head == kNoSegment) return head;
  SpinGuard guard(&core.shared->segment_lock);
  SegmentEntry& entry = core.segment(head);
  count_reserved(*core.shared, -load_relaxed(&entry.chain_length));
  store_relaxed(&core.reservations[id % kReservationsMax].head, kNoSegment);
  if (!is_in_log(core, id)) return head;
  const uint64_t left = load_relaxed(&entry.pages) - 1;
  store_relaxed(&entry.pages, left);
  if (left == 0 && entry.load_state() == SegmentState::kHeld) {
    enqueue_sealed(core, head, draw_ticket(&core.shared->epoch));
  }
  return head;
}

// Counts `count` segments as reserved. False: others hold all that may be.
WC_HD inline bool may_reserve(Shared& shared, uint32_t count) {
  SpinGuard guard(&shared.segment_lock);
  const uint32_t limit = load_relaxed(&shared.segment_limit) / kReservedShareMax;
  if (shared.reserved_segments != 0 && shared.reserved_segments + count > limit) return false;
  count_reserved(shared, count);
  return true;
}

// 0: all are in use. REQUIRES: the segment lock is held.
WC_HD inline uint32_t open_reservation(const Core& core, SegmentId head, uint32_t append_point,
                                       uint32_t at) {
  for (uint32_t i = 0; i < kReservationsMax; ++i) {
    Reservation& slot = core.reservations[i];
    if (slot.head != kNoSegment) continue;
    const uint32_t generation = slot.generation % (UINT32_MAX / kReservationsMax - 1) + 1;
    store_relaxed(&slot.generation, generation);
    slot.append_point = append_point;
    slot.at = at;
    store_release(&slot.head, head);
    return generation * kReservationsMax + i;
  }
  return 0;
}

inline constexpr uint32_t kFillBefore = 32;  // of a page's end
inline constexpr uint32_t kFillMax = kFillBefore + kChainItemAt;

// The bytes before an item at `used`, so that it does not begin at the start of a page: see
// kChainItemAt. 0, or an item without key.
WC_HD inline uint32_t fill_before(uint32_t used) {
  constexpr uint32_t kHeader = sizeof(Item);
  constexpr uint32_t kPage = 4096;
  const uint32_t from = (used + kFillBefore) % kPage;
  const uint32_t to = kFillMax;
  if (from >= to) return 0;
  return to - from < kHeader ? kHeader : to - from;
}

// Takes space at an append point. REQUIRES: may_reserve().
WC_HD inline Status reserve_in_log(const Core& core, uint32_t append_point, uint8_t key_size,
                                   uint32_t value_size, uint32_t* id) {
  const uint32_t bytes = static_cast<uint32_t>(item_footprint(key_size, value_size));
  AppendPoint& point = core.append_points[append_point];
  SpinGuard append_guard(&point.lock);
  const SegmentId open = open_segment(core, point.open[0], bytes + kFillMax);
  SpinGuard guard(&core.shared->segment_lock);
  const uint32_t used = open == kNoSegment ? 0 : load_relaxed(&core.segment(open).used);
  const uint32_t fill = fill_before(used);
  const uint32_t at = used + fill;
  *id = open == kNoSegment ? 0 : open_reservation(core, open, append_point, at);
  if (*id == 0) {
    count_reserved(*core.shared, -1u);
    return open == kNoSegment ? Status::kDeferred : Status::kOutOfMemory;
  }
  SegmentEntry& entry = core.segment(open);
  store_relaxed(&entry.pages, load_relaxed(&entry.pages) + 1);
  if (fill != 0) {
    Item* const filler = init_item(append(core, open, fill), 0,
                                   fill - static_cast<uint32_t>(sizeof(Item)), 0, Layout::kPlain);
    store_relaxed(&filler->dropped, uint8_t{1});
  }
  init_item(append(core, open, bytes), key_size, value_size, 0, Layout::kPlain);
  return Status::kOk;
}

// REQUIRES: may_reserve().
WC_HD inline Status reserve_apart(const Core& core, const ChainShape& shape, uint8_t key_size,
                                  uint32_t value_size, uint32_t* id) {
  const SegmentId head =
      take_chain(core, shape, core.shared->copy_reserve, SegmentState::kStaged, Generation::kYoung);
  if (head != kNoSegment) {
    const bool chained = item_bytes(key_size, value_size) > core.plain_size_max();
    init_item(chain_item(core, head), key_size, value_size, 0,
              chained ? Layout::kChained : Layout::kPlain);
  }
  SpinGuard guard(&core.shared->segment_lock);
  *id = head == kNoSegment ? 0 : open_reservation(core, head, kApart, kChainItemAt);
  if (*id != 0) return Status::kOk;
  count_reserved(*core.shared, -shape.segments);
  if (head == kNoSegment) return Status::kDeferred;
  free_chain_locked(core, head);
  return Status::kOutOfMemory;
}

}  // namespace detail

// Takes space for an item. kOk: `id` is not 0. kTooLarge: it never fits. kOutOfMemory: others
// hold all that may be reserved. kDeferred: reclaim() first. Inside an epoch or not.
// `append_point`: where it may lie in the log; kApart: nowhere.
WC_HD inline Status reserve_item(const Core& core, uint8_t key_size, uint32_t value_size,
                                 uint32_t append_point, uint32_t* id) {
  if (is_too_large(core, key_size, value_size)) return Status::kTooLarge;
  if (detail::fails_on_demand(*core.shared)) return Status::kDeferred;
  const uint64_t bytes = item_bytes(key_size, value_size);
  const ChainShape shape = chain_shape(core, bytes);
  if (!detail::may_reserve(*core.shared, shape.segments)) return Status::kOutOfMemory;
  const bool in_log = append_point != kApart && bytes <= core.plain_size_max() &&
                      bytes >= core.segment_size() / kInLogShareMin;
  return in_log ? detail::reserve_in_log(core, append_point, key_size, value_size, id)
                : detail::reserve_apart(core, shape, key_size, value_size, id);
}

// Null if the id is used up or abandoned.
WC_HD inline Item* reservation_item(const Core& core, uint32_t id) {
  const SegmentId head = detail::current_head(core, id);
  if (head == kNoSegment) return nullptr;
  return reinterpret_cast<Item*>(core.segment_data(head) + detail::reservation_slot(core, id).at);
}

WC_HD inline void abandon_reservation(const Core& core, uint32_t id) {
  Item* const item = reservation_item(core, id);
  if (item == nullptr) return;
  const uint32_t append_point = detail::reservation_slot(core, id).append_point;
  if (append_point != kApart) {
    detail::leave_in_log(core, append_point, item);
    detail::close_reservation(core, id);
  } else {
    free_chain(core, detail::close_reservation(core, id));
  }
}

// See StoreRef::allocate_reserved(). REQUIRES: `id` is current.
WC_HD inline Status allocate_from_reservation(const Core& core, const ThreadContext& thread,
                                              uint32_t id, uint32_t expiry,
                                              Allocation& allocation) {
  Item* staged = reservation_item(core, id);
  WC_ASSERT(staged != nullptr);
  // Items with a short time to live lie in other segments of the log.
  const bool stays =
      staged->chained() || (detail::is_in_log(core, id) && expiry_class(*core.shared, expiry) == 0);
  if (stays) {
    const bool chained = staged->chained();
    staged->store_expiry(expiry);
    core.segment(core.segment_of(staged)).note_expiry(expiry);
    allocation = {staged,
                  static_cast<uint32_t>(chained ? item_bytes(staged->key_size, staged->value_size)
                                                : item_footprint(*staged)),
                  true};
    detail::close_reservation(core, id);
    return Status::kOk;
  }
  const Status status =
      allocate_item(core, thread, staged->key_size, staged->value_size, expiry, allocation);
  if (status != Status::kOk) return status;
  copy_value(core, *allocation.item, 0, *staged);
  allocation.holds_value = true;
  abandon_reservation(core, id);
  return Status::kOk;
}

}  // namespace warpcache::store
