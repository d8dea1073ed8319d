// SPDX-License-Identifier: Apache-2.0
//
// The addresses of all parts of a store, in one view that is copied to whoever works on them. It
// also holds the constants that every look-up needs. Owns nothing; valid as long as its Store.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/hash.h"
#include "base/hd.h"
#include "store/layout/item.h"
#include "store/layout/segment.h"
#include "store/layout/set.h"
#include "store/layout/shared.h"

namespace warpcache::store {

struct Reservation;

struct Core {
  uint8_t* arena = nullptr;
  // On a device the arena may be split: offsets from near_bytes on are in host memory, which begins
  // at far_arena. The near part is a multiple of kFreeWordSegments segments and holds the whole
  // index.
  uint8_t* far_arena = nullptr;
  uint64_t near_bytes = UINT64_MAX;
  Shared* shared = nullptr;
  SegmentEntry* segments = nullptr;
  AppendPoint* append_points = nullptr;
  uint64_t* free_words = nullptr;       // one bit a segment, guarded by the segment lock
  EpochSlot* epochs = nullptr;          // one a reader
  Reservation* reservations = nullptr;  // kReservationsMax
  HashSeed seed = {};                   // of keys
  uint32_t segment_shift = 0;
  uint32_t base_depth = 0;

  WC_HD uint32_t segment_size() const { return 1u << segment_shift; }
  WC_HD uint8_t* at(uint64_t offset) const {
#if defined(__CUDA_ARCH__)
    if (offset >= near_bytes) return far_arena + offset;
#endif
    return arena + offset;
  }
  WC_HD uint8_t* segment_data(SegmentId id) const { return at(uint64_t{id} << segment_shift); }
  WC_HD bool is_near(SegmentId id) const { return uint64_t{id} << segment_shift < near_bytes; }
  WC_HD SegmentEntry& segment(SegmentId id) const { return segments[id]; }
  WC_HD uint64_t offset_of(const Item* item) const {
    const auto* address = reinterpret_cast<const uint8_t*>(item);
    const auto offset = static_cast<uint64_t>(address - arena);
#if defined(__CUDA_ARCH__)
    if (offset >= near_bytes) return static_cast<uint64_t>(address - far_arena);
#endif
    return offset;
  }
  WC_HD SegmentId segment_of(const Item* item) const {
    return static_cast<SegmentId>(offset_of(item) >> segment_shift);
  }
  WC_HD Item* item_at(uint64_t offset) const { return reinterpret_cast<Item*>(at(offset)); }
  WC_HD Item* item_in(Slot slot) const { return item_at(slot_offset(slot)); }

  // Larger items are chains. Bytes.
  WC_HD uint32_t plain_size_max() const { return segment_size() / 2; }
};
static_assert(std::is_trivially_copyable_v<Core>);

}  // namespace warpcache::store
