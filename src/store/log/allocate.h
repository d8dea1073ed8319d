// SPDX-License-Identifier: Apache-2.0
//
// Space for items that requests write: at the end of an append point's open segment, or, above half
// a segment, in a chain of segments. An item's header is valid from the first moment on, so that a
// later walk of the segment can step over items that were never published.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "store/log/segments.h"
#include "store/observer.h"

namespace warpcache::store {

// Space that belongs to the calling thread until publish() or abandon(), both in the same batch.
struct Allocation {
  Item* item = nullptr;      // sizes and layout are set; the caller fills the rest
  uint32_t bytes = 0;        // taken in the segment, or in the whole chain
  bool holds_value = false;  // the value is in place already

  WC_HD explicit operator bool() const { return item != nullptr; }
};

// Items that live less than a day, an hour, or five minutes are in class 1, 2 or 3, all others in
// class 0.
WC_HD inline uint32_t expiry_class(const Shared& shared, uint32_t expiry) {
  const uint32_t now = load_relaxed(&shared.now);
  if (shared.expiry_classes == 1 || expiry == 0 || expiry <= now) return 0;
  const uint32_t left = expiry - now;
  if (left >= 24 * 3600) return 0;
  if (left >= 3600) return 1;
  return left >= 300 ? 2 : 3;
}

// Segments that a chain for an item above plain_size_max() takes at most.
WC_HD inline uint64_t chain_segments(const Core& core, uint64_t bytes) {
  return (bytes + kChainItemAt + core.segment_size() - 1) >> core.segment_shift;
}

// An item of these sizes can never be stored, however empty the store is: a chain takes at most
// three quarters of the segments that the index does not use.
WC_HD inline bool is_too_large(const Core& core, uint32_t key_size, uint64_t value_size) {
  const uint64_t bytes = item_bytes(key_size, value_size);
  if (bytes <= core.plain_size_max()) return false;
  const uint64_t segments = chain_segments(core, bytes);
  const uint64_t limit = load_relaxed(&core.shared->segment_limit);
  const uint64_t index = load_relaxed(&core.shared->index_segments);
  return value_size > UINT32_MAX || segments > (limit - index) * 3 / 4;
}

namespace detail {

WC_HD inline Item* init_item(void* data, uint8_t key_size, uint32_t value_size, uint32_t expiry,
                             Layout layout) {
  Item* item = static_cast<Item*>(data);
  item->value_size = value_size;
  item->key_size = key_size;
  item->layout = layout;
  item->client_flags = 0;
  item->store_flush_generation(0);
  store_relaxed(&item->dropped, uint8_t{0});
  item->init_words(0, expiry, 0);
  item->store_access_time(0);
  return item;
}

WC_HD inline bool fails_on_demand(const Shared& shared) {
#if defined(__CUDA_ARCH__)
  (void)shared;
  return false;
#else
  return shared.faults != nullptr && shared.faults->fails_allocation();
#endif
}

// Space in `open` for `bytes`, or null. REQUIRES: no other thread takes space there meanwhile.
WC_HD inline uint8_t* append(const Core& core, SegmentId open, uint32_t bytes) {
  if (open == kNoSegment) return nullptr;
  SegmentEntry& entry = core.segment(open);
  const uint32_t used = load_relaxed(&entry.used);
  if (used + bytes > core.segment_size()) return nullptr;
  store_relaxed(&entry.used, used + bytes);
  return core.segment_data(open) + used;
}

// Returns `open`, an append point's segment, or a new one in its place, with at least `bytes` free.
// kNoSegment: too few segments are free. REQUIRES: the append point's lock is held, `bytes` is at
// most plain_size_max().
WC_HD inline SegmentId open_segment(const Core& core, SegmentId& open, uint32_t bytes) {
  if (open != kNoSegment && load_relaxed(&core.segment(open).used) + bytes <= core.segment_size()) {
    return open;
  }
  const SegmentId fresh =
      take_segment(core, core.shared->copy_reserve, SegmentState::kOpen, Generation::kYoung);
  if (fresh == kNoSegment) return kNoSegment;
  if (open != kNoSegment) seal_segment(core, open);
  open = fresh;
  return fresh;
}

}  // namespace detail

// A chain for the item alone. kDeferred: too few segments are free.
WC_HD inline Status allocate_chain(const Core& core, uint32_t reserve, uint8_t key_size,
                                   uint32_t value_size, uint32_t expiry, Allocation& allocation) {
  const uint64_t bytes = item_bytes(key_size, value_size);
  const SegmentId head = take_chain(core, chain_shape(core, bytes), reserve, SegmentState::kStaged,
                                    Generation::kYoung);
  if (head == kNoSegment) return Status::kDeferred;
  allocation.item =
      detail::init_item(chain_item(core, head), key_size, value_size, expiry, Layout::kChained);
  allocation.bytes = static_cast<uint32_t>(bytes);
  core.segment(head).note_expiry(expiry);
  return Status::kOk;
}

// kDeferred: reclaim() and try again. kTooLarge: it never fits.
WC_HD inline Status allocate_item(const Core& core, const ThreadContext& thread, uint8_t key_size,
                                  uint32_t value_size, uint32_t expiry, Allocation& allocation) {
  allocation = {};
  Shared& shared = *core.shared;
  if (detail::fails_on_demand(shared)) return Status::kDeferred;
  if (item_bytes(key_size, value_size) > core.plain_size_max()) {
    if (is_too_large(core, key_size, value_size)) return Status::kTooLarge;
    return allocate_chain(core, shared.copy_reserve, key_size, value_size, expiry, allocation);
  }
  const uint32_t bytes = static_cast<uint32_t>(item_footprint(key_size, value_size));
  AppendPoint& point = core.append_points[thread.append_point];
  SpinGuard guard(&point.lock);
  const SegmentId open =
      detail::open_segment(core, point.open[expiry_class(shared, expiry)], bytes);
  if (open == kNoSegment) return Status::kDeferred;
  core.segment(open).note_expiry(expiry);
  allocation.item = detail::init_item(detail::append(core, open, bytes), key_size, value_size,
                                      expiry, Layout::kPlain);
  allocation.bytes = bytes;
  return Status::kOk;
}

// Space for several neighbouring items. Threads of a warp use it: if each took the append point's
// lock by itself, their waits would add up.
struct Run {
  uint8_t* data = nullptr;
  uint32_t space = 0;  // bytes
};

// The rest of the append point's open segment, or of a new one where fewer than `first` bytes are
// free. `first` is the size of the first item, so the end of a segment wastes no more than with
// single items. The caller makes items of what it uses (detail::init_item) and calls end_run();
// until then the append point is locked. With data null there is no free space, nothing is locked,
// and allocate_item() says why.
WC_HD inline Run begin_run(const Core& core, const ThreadContext& thread, uint32_t first,
                           uint32_t expiry_class) {
  AppendPoint& point = core.append_points[thread.append_point];
  spin_lock(&point.lock);
  const SegmentId open = detail::open_segment(core, point.open[expiry_class], first);
  if (open == kNoSegment) {
    spin_unlock(&point.lock);
    return {};
  }
  const uint32_t used = load_relaxed(&core.segment(open).used);
  return {core.segment_data(open) + used, core.segment_size() - used};
}

// `bytes`: the size of the items that the caller made.
WC_HD inline void end_run(const Core& core, const ThreadContext& thread, uint32_t bytes,
                          uint32_t expiry_class) {
  AppendPoint& point = core.append_points[thread.append_point];
  (void)detail::append(core, point.open[expiry_class], bytes);
  spin_unlock(&point.lock);
}

namespace detail {

// Gives the space of an item that will not be published back: at once if it is the last of an open
// segment, else with the segment.
WC_HD inline void leave_in_log(const Core& core, uint32_t append_point, Item* item) {
  AppendPoint& point = core.append_points[append_point];
  SpinGuard guard(&point.lock);
  store_release(&item->dropped, uint8_t{1});
  const SegmentId id = core.segment_of(item);
  SegmentEntry& entry = core.segment(id);
  if (entry.load_state() != SegmentState::kOpen) return;
  const uint32_t bytes = static_cast<uint32_t>(item_footprint(*item));
  const uint64_t end = core.offset_of(item) + bytes;
  const uint32_t used = load_relaxed(&entry.used);
  if (end == (uint64_t{id} << core.segment_shift) + used) store_relaxed(&entry.used, used - bytes);
}

}  // namespace detail

// Gives unpublished space back. A chain becomes free at once.
WC_HD inline void abandon_item(const Core& core, const ThreadContext& thread,
                               Allocation& allocation) {
  const SegmentId id = core.segment_of(allocation.item);
  if (allocation.item->chained()) {
    free_chain(core, id);
  } else {
    detail::leave_in_log(core, thread.append_point, allocation.item);
  }
  allocation = {};
}

}  // namespace warpcache::store
