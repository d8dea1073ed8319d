// SPDX-License-Identifier: Apache-2.0
//
// The replacement state of each row of a set-associative table, and the row's next victim, for
// every Replacement.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "hitrate/set_policies.h"
#include "nic_cache/geometry.h"

namespace warpcache::nic {

class UseOrder {
 public:
  explicit UseOrder(const Geometry& geometry);

  // Records that an entry got the item of another key, with this hash.
  void stored(uint64_t row, uint32_t way, uint32_t hash = 0);

  // Records that an entry's item was read or written again.
  void used(uint64_t row, uint32_t way);

  // Records that an entry is empty now. REQUIRES: it was not.
  void removed(uint64_t row, uint32_t way);

  // The way to evict next. REQUIRES: `filled` has a bit for each filled way; at least one is
  // filled.
  uint32_t victim(uint64_t row, uint32_t filled);

 private:
  uint64_t first(uint64_t row) const { return row * ways_; }
  void point_away(uint64_t row, uint32_t way);
  void mark(uint64_t row, uint32_t way);
  uint32_t oldest(uint64_t row, uint32_t filled) const;
  uint32_t least_used(uint64_t row, uint32_t filled) const;
  uint32_t tree_victim(uint64_t row, uint32_t filled) const;
  uint32_t unmarked(uint64_t row, uint32_t filled) const;

  using Queues =
      std::variant<std::monostate, sim::SetSieve, sim::SetS3Fifo, sim::SetTwoGenerations>;
  static Queues queues_of(const Geometry& geometry);

  Replacement replacement_;
  uint32_t ways_;
  Queues queues_;                 // of is_queued()
  uint32_t clock_ = 0;            // counts uses; asserted never to wrap
  std::vector<uint32_t> stamps_;  // of each entry: when stored (FIFO) or last used (LRU, LFU)
  std::vector<uint32_t> counts_;  // of each entry: uses since it was stored (LFU)
  std::vector<uint32_t> bits_;    // of each row: the tree's nodes, or a bit for each way
};

}  // namespace warpcache::nic
