// SPDX-License-Identifier: Apache-2.0
//
// A value as pieces of contiguous bytes: one piece for an item in a segment; for a chain one a
// segment, and one for its tail.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/mem.h"
#include "store/log/tails.h"

namespace warpcache::store {

// Walks the pieces of a value:  for (Bytes p = pieces.first(); !p.empty(); p = pieces.next()) ...
// Valid as long as the item may be read. A copy of the walker continues from the same piece.
class ValuePieces {
 public:
  ValuePieces() = default;
  // Always inlined: every get runs it.
  WC_HD __attribute__((always_inline)) ValuePieces(const Core& core, const Item& item)
      : core_(core), left_(item.value_size) {
    const uint8_t* start = item.value_data();
    if (!item.chained()) {
      first_ = {const_cast<uint8_t*>(start), left_};
    } else {
      segment_ = core.segment_of(&item);
      const uint64_t space =
          core.segment_size() - static_cast<uint64_t>(start - core.segment_data(segment_));
      first_ = {const_cast<uint8_t*>(start), space < left_ ? static_cast<size_t>(space) : left_};
    }
    left_ -= static_cast<uint32_t>(first_.size);
  }

  // Empty for an empty value.
  WC_HD MutableBytes first_writable() const { return first_; }
  WC_HD Bytes first() const { return first_; }

  // The next piece; empty after the last.
  WC_HD MutableBytes next_writable() {
    if (left_ == 0) return {};
    const SegmentEntry& entry = core_.segment(segment_);
    const uint32_t size = left_ < core_.segment_size() ? left_ : core_.segment_size();
    left_ -= size;
    const SegmentId next = load_relaxed(&entry.chain_next);
    if (next == kNoSegment) return {tail_data(core_, load_relaxed(&entry.chain_head)), size};
    segment_ = next;
    return {core_.segment_data(segment_), size};
  }
  WC_HD Bytes next() { return next_writable(); }

 private:
  Core core_;
  MutableBytes first_;
  SegmentId segment_ = kNoSegment;
  uint32_t left_ = 0;  // bytes after the last piece that was returned
};

// Writes `bytes` into the value from `offset` on. REQUIRES: the item is not published; offset +
// size <= value_size.
WC_HD inline void write_value(const Core& core, Item& item, uint32_t offset, Bytes bytes) {
  WC_ASSERT(uint64_t{offset} + bytes.size <= item.value_size);
  ValuePieces pieces(core, item);
  uint64_t at = 0;
  for (MutableBytes piece = pieces.first_writable(); bytes.size != 0;
       piece = pieces.next_writable()) {
    const uint64_t end = at + piece.size;
    if (offset < end) {
      const uint64_t into = offset - at;
      const size_t count =
          bytes.size < piece.size - into ? bytes.size : static_cast<size_t>(piece.size - into);
      mem_copy_long(piece.data + into, bytes.data, count);
      bytes = bytes.from(count);
      offset += static_cast<uint32_t>(count);
    }
    at = end;
  }
}

// Writes the whole value of `source` into the value of `item` from `offset` on. REQUIRES: as
// write_value; `source` may be read.
WC_HD inline void copy_value(const Core& core, Item& item, uint32_t offset, const Item& source) {
  ValuePieces pieces(core, source);
  for (Bytes piece = pieces.first(); !piece.empty(); piece = pieces.next()) {
    write_value(core, item, offset, piece);
    offset += static_cast<uint32_t>(piece.size);
  }
}

// The contiguous bytes of the value from `offset` on. REQUIRES: offset < value_size.
WC_HD inline MutableBytes value_window(const Core& core, const Item& item, uint32_t offset) {
  ValuePieces pieces(core, item);
  uint64_t at = 0;
  MutableBytes piece = pieces.first_writable();
  while (at + piece.size <= offset) {
    at += piece.size;
    piece = pieces.next_writable();
  }
  const size_t into = static_cast<size_t>(offset - at);
  return {piece.data + into, piece.size - into};
}

}  // namespace warpcache::store
