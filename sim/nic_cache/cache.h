// SPDX-License-Identifier: Apache-2.0
//
// The NIC cache's table and DRAM: a set-associative table of short tags, each of which stands for a
// key and a value in the NIC's DRAM (Fukuda et al., section 5, figure 11). A tag that matches is a
// guess: the key in DRAM is compared whole before anything is a hit.
//
// Keys are numbers and values are version numbers, which is enough for a simulation. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_cache/geometry.h"
#include "nic_cache/order.h"

namespace warpcache::nic {

// The item of an entry in DRAM.
struct Item {
  uint32_t key = 0;
  uint32_t value = 0;
  uint32_t bytes = 0;  // key and value together
  bool dirty = false;  // not written to the host yet
};

struct CacheCounters {
  uint64_t false_hits = 0;      // look-ups whose tag matched another key's
  uint64_t tag_overwrites = 0;  // items replaced by another key with the same row and tag
  uint64_t evictions = 0;       // items evicted because their row was full
  uint64_t room_evictions = 0;  // items evicted because the pool had no free block
};

class NicCache {
 public:
  // REQUIRES: geometry.fault() is null.
  explicit NicCache(const Geometry& geometry);

  const Geometry& geometry() const { return geometry_; }

  // The item of `key`, or null; counts as a use of the entry that the tag names. Valid until the
  // next call that is not const.
  const Item* find(uint32_t key, uint32_t hash);

  // Whether it has the item of `key`. No use.
  bool holds(uint32_t key, uint32_t hash) const;
  // Whether an item that is not in the cache would evict none of its row.
  bool has_space(uint32_t hash) const;

  // Whether put() accepts items of `bytes`.
  bool accepts(uint32_t bytes) const { return bytes <= item_bytes_max_; }

  // Stores the item; counts as a use. Appends the items that it evicts to `gone`, except an older
  // one of the same key. REQUIRES: accepts(item.bytes).
  void put(const Item& item, uint32_t hash, std::vector<Item>* gone);

  // Removes the item of `key`. Returns whether there was one.
  bool erase(uint32_t key, uint32_t hash);

  // Removes the entry with the row and tag of `hash`, whatever its key: hardware can do that
  // without reading DRAM. Returns whether there was one.
  bool erase_tag(uint32_t hash);

  uint64_t items() const { return items_; }
  uint64_t used_blocks() const { return used_blocks_; }
  uint64_t pool_blocks() const { return pool_blocks_; }
  const CacheCounters& counters() const { return counters_; }

 private:
  static constexpr uint32_t kEmpty = ~uint32_t{0};  // wider than any tag
  static constexpr uint32_t kNoWay = ~uint32_t{0};

  uint64_t row_of(uint32_t hash) const { return uint64_t{hash} >> row_shift_; }
  uint32_t tag_of(uint32_t hash) const { return hash & tag_mask_; }
  uint32_t way_of(uint64_t row, uint32_t tag) const;
  uint32_t blocks_of(uint32_t bytes) const;
  uint32_t way_for(uint64_t row, uint32_t tag, uint32_t key, std::vector<Item>* gone);
  void reclaim(uint32_t blocks, std::vector<Item>* gone);
  void release(uint64_t row, uint32_t way);
  void free_entry(uint64_t at);

  Geometry geometry_;
  uint32_t row_shift_;
  uint32_t tag_mask_;
  uint32_t item_bytes_max_;
  uint64_t pool_blocks_ = 0;  // of kBlocks
  uint64_t used_blocks_ = 0;
  uint64_t hand_row_ = 0;  // the row that evicts next
  uint64_t items_ = 0;
  std::vector<uint32_t> tags_;  // kEmpty, or the entry's tag; row by row
  std::vector<Item> dram_;      // of each entry
  UseOrder order_;
  CacheCounters counters_;
};

}  // namespace warpcache::nic
