// SPDX-License-Identifier: Apache-2.0
//
// What each row of a set-associative table remembers of the uses of its entries, and which entry it
// would give up, for every Replacement.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_cache/geometry.h"

namespace warpcache::nic {

class UseOrder {
 public:
  explicit UseOrder(const Geometry& geometry);

  // An entry was filled with another key's item.
  void stored(uint64_t row, uint32_t way);

  // An entry's item was read or written again.
  void used(uint64_t row, uint32_t way);

  // The way to give up next. REQUIRES: all ways of the row are filled, or `filled` (a bit for each
  // way) says which are; at least one.
  uint32_t victim(uint64_t row, uint32_t filled) const;

 private:
  uint64_t first(uint64_t row) const { return row * ways_; }
  void point_away(uint64_t row, uint32_t way);
  void mark(uint64_t row, uint32_t way);
  uint32_t oldest(uint64_t row, uint32_t filled) const;
  uint32_t least_used(uint64_t row, uint32_t filled) const;
  uint32_t tree_victim(uint64_t row, uint32_t filled) const;
  uint32_t unmarked(uint64_t row, uint32_t filled) const;

  Replacement replacement_;
  uint32_t ways_;
  uint32_t clock_ = 0;            // counts uses; asserted never to wrap
  std::vector<uint32_t> stamps_;  // of each entry: when stored (FIFO) or last used (LRU, LFU)
  std::vector<uint32_t> counts_;  // of each entry: uses since it was stored (LFU)
  std::vector<uint32_t> bits_;    // of each row: the tree's nodes, or a bit for each way
};

}  // namespace warpcache::nic
