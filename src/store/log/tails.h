// SPDX-License-Identifier: Apache-2.0
//
// The end of a chain, where it is shorter than a segment: some pages of a segment that holds such
// ends of many chains. A page is a 64th of a segment. A tail belongs to its chain from allocation
// on and never moves: it is freed with the chain, when no reader and no pin is left. So tails have
// no epoch and no pin of their own, and a chain takes no more segments than if it shared none.
//
// REQUIRES for each: the segment lock is held, except where it says otherwise.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "store/log/free_segments.h"

namespace warpcache::store {

inline constexpr uint32_t kTailPages = 64;  // of a segment

// What a chain takes: whole segments, and pages of another one for the rest.
struct ChainShape {
  uint32_t segments = 1;
  uint32_t tail_pages = 0;
};

// Where a chain's item begins in its first segment, in bytes. Not at the start of a page: there the
// value of a set would begin a few bytes after where it begins in the request, which a client's
// system has put at the start of a page. On processors of AMD `rep movsb`, by which Linux copies
// from a socket, takes several times as long if a page's byte goes 1 to 31 bytes further on in
// another.
inline constexpr uint32_t kChainItemAt = 64;

// Bytes of a value that lie in its first piece, whatever the size of segments and of the key, also
// in a chain.
inline constexpr uint32_t kFirstPieceMin = 16'000;

WC_HD inline Item* chain_item(const Core& core, SegmentId head) {
  return reinterpret_cast<Item*>(core.segment_data(head) + kChainItemAt);
}

// Of an item of `bytes` (item_bytes()). Takes no lock.
WC_HD inline ChainShape chain_shape(const Core& core, uint64_t bytes) {
  bytes += kChainItemAt;
  const uint32_t page = core.segment_size() / kTailPages;
  const uint32_t whole = static_cast<uint32_t>(bytes >> core.segment_shift);
  const uint32_t rest = static_cast<uint32_t>(bytes) & (core.segment_size() - 1);
  const uint32_t pages = divided_up(rest, page);
  if (whole == 0 || pages == kTailPages) return {whole + 1, 0};
  return {whole, pages};
}

// The first bytes of a chain's tail, given the chain's head. REQUIRES: the chain has a tail, and
// may be read. Takes no lock.
WC_HD inline uint8_t* tail_data(const Core& core, SegmentId head) {
  const uint64_t tail = load_relaxed(&core.segment(head).pages);
  WC_ASSERT(tail != 0);
  const uint32_t first = static_cast<uint32_t>(tail >> kTailFirstShift) & 0xff;
  return core.segment_data(tail_segment(tail)) +
         uint64_t{first} * (core.segment_size() / kTailPages);
}

namespace detail {

inline constexpr uint32_t kTailSegmentsTried = 8;

WC_HD inline uint64_t page_mask(uint32_t first, uint32_t count) {
  return ((uint64_t{1} << count) - 1) << first;
}

// The first of `count` neighbouring pages that are free; kTailPages: there are none.
WC_HD inline uint32_t find_pages(uint64_t used, uint32_t count) {
  uint64_t starts = ~used;  // of as many free pages as `found`
  for (uint32_t found = 1; found < count && starts != 0;) {
    const uint32_t more = count - found < found ? count - found : found;
    starts &= starts >> more;
    found += more;
  }
  return starts == 0 ? kTailPages : lowest_bit(starts);
}

// The segment that a tail of `count` pages goes to; kNoSegment: a fresh one. None goes to the one
// that the index waits for.
WC_HD inline SegmentId find_tail_segment(const Core& core, uint32_t count) {
  const Shared& shared = *core.shared;
  SegmentId id = shared.tails.newest;
  for (uint32_t i = 0; i < kTailSegmentsTried && id != kNoSegment; ++i) {
    const SegmentEntry& entry = core.segment(id);
    const bool wanted = id == load_relaxed(&shared.segment_wanted);
    if (!wanted && find_pages(load_relaxed(&entry.pages), count) != kTailPages) return id;
    id = entry.queue_older;
  }
  return kNoSegment;
}

// Gives pages of `id` to a chain. Only segments with free pages are in the queue.
WC_HD inline void take_tail(const Core& core, SegmentId head, SegmentId id, uint32_t count) {
  SegmentEntry& entry = core.segment(id);
  const uint32_t first = find_pages(load_relaxed(&entry.pages), count);
  store_relaxed(&entry.pages, load_relaxed(&entry.pages) | page_mask(first, count));
  if (~entry.pages == 0) queue_remove(core, core.shared->tails, id);
  store_relaxed(&core.segment(head).pages, make_tail(id, first, count));
}

// Frees the tail of a chain, if it has one.
WC_HD inline void free_tail(const Core& core, SegmentId head) {
  const uint64_t tail = load_relaxed(&core.segment(head).pages);
  if (tail == 0) return;
  store_relaxed(&core.segment(head).pages, 0);
  const SegmentId id = tail_segment(tail);
  SegmentEntry& entry = core.segment(id);
  const uint64_t before = load_relaxed(&entry.pages);
  const uint64_t left = before & ~page_mask(static_cast<uint32_t>(tail >> kTailFirstShift) & 0xff,
                                            static_cast<uint32_t>(tail) & 0xff);
  store_relaxed(&entry.pages, left);
  if (~before == 0) queue_push(core, core.shared->tails, id);
  if (left != 0) return;
  queue_remove(core, core.shared->tails, id);
  mark_free(core, id);
}

}  // namespace detail

}  // namespace warpcache::store
