// SPDX-License-Identifier: Apache-2.0
//
// Space for a value that arrives piece by piece, possibly over many batches: it is taken, filled,
// and then published or abandoned. It is a chain of segments that maintenance does not visit, with
// the item's header and space for the key in front. An item above half a segment is published where
// it lies; a smaller one is copied when it is published.
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
  SegmentId head;       // kNoSegment: not in use. Written after `generation`
  uint32_t generation;  // changes with each use, so that an old id is not valid
};

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

// Returns the same, and ends the reservation; its segments stay taken.
WC_HD inline SegmentId close_reservation(const Core& core, uint32_t id) {
  const SegmentId head = current_head(core, id);
  if (head == kNoSegment) return head;
  SpinGuard guard(&core.shared->segment_lock);
  count_reserved(*core.shared, -load_relaxed(&core.segment(head).chain_length));
  store_relaxed(&core.reservations[id % kReservationsMax].head, kNoSegment);
  return head;
}

}  // namespace detail

// Takes space for an item. kOk: `id` is not 0. kTooLarge: it never fits. kOutOfMemory: others
// hold all that may be reserved. kDeferred: reclaim() first. Inside an epoch or not.
WC_HD inline Status reserve_item(const Core& core, uint8_t key_size, uint32_t value_size,
                                 uint32_t* id) {
  Shared& shared = *core.shared;
  if (is_too_large(core, key_size, value_size)) return Status::kTooLarge;
  if (detail::fails_on_demand(shared)) return Status::kDeferred;
  const uint64_t bytes = item_bytes(key_size, value_size);
  const ChainShape shape = chain_shape(core, bytes);
  const uint32_t count = shape.segments;
  {
    SpinGuard guard(&shared.segment_lock);
    const uint32_t limit = load_relaxed(&shared.segment_limit) / kReservedShareMax;
    if (shared.reserved_segments != 0 && shared.reserved_segments + count > limit)
      return Status::kOutOfMemory;
    detail::count_reserved(shared, count);
  }
  const SegmentId head =
      take_chain(core, shape, shared.copy_reserve, SegmentState::kStaged, Generation::kYoung);
  if (head != kNoSegment) {
    const Layout layout = bytes > core.plain_size_max() ? Layout::kChained : Layout::kPlain;
    detail::init_item(core.segment_data(head), key_size, value_size, 0, layout);
  }
  SpinGuard guard(&shared.segment_lock);
  for (uint32_t i = 0; head != kNoSegment && i < kReservationsMax; ++i) {
    Reservation& slot = core.reservations[i];
    if (slot.head != kNoSegment) continue;
    const uint32_t generation = slot.generation % (UINT32_MAX / kReservationsMax - 1) + 1;
    store_relaxed(&slot.generation, generation);
    store_release(&slot.head, head);
    *id = generation * kReservationsMax + i;
    return Status::kOk;
  }
  detail::count_reserved(shared, -count);
  if (head == kNoSegment) return Status::kDeferred;
  free_chain_locked(core, head);
  return Status::kOutOfMemory;
}

// Null if the id is used up or abandoned.
WC_HD inline Item* reservation_item(const Core& core, uint32_t id) {
  const SegmentId head = detail::current_head(core, id);
  return head == kNoSegment ? nullptr : reinterpret_cast<Item*>(core.segment_data(head));
}

WC_HD inline void abandon_reservation(const Core& core, uint32_t id) {
  const SegmentId head = detail::close_reservation(core, id);
  if (head != kNoSegment) free_chain(core, head);
}

// See StoreRef::allocate_reserved(). REQUIRES: `id` is current.
WC_HD inline Status allocate_from_reservation(const Core& core, const ThreadContext& thread,
                                              uint32_t id, uint32_t expiry,
                                              Allocation& allocation) {
  Item* staged = reservation_item(core, id);
  WC_ASSERT(staged != nullptr);
  if (staged->chained()) {
    detail::close_reservation(core, id);
    staged->store_expiry(expiry);
    core.segment(core.segment_of(staged)).note_expiry(expiry);
    allocation = {staged, static_cast<uint32_t>(item_bytes(staged->key_size, staged->value_size)),
                  true};
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
