// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ablation/kernels.h"

namespace warpcache::ablation {

// Where a key's item lies.
struct Located {
  uint64_t hash = 0;
  uint64_t offset = 0;   // in the arena; 0: nowhere, since the index lies there
  uint32_t sectors = 0;  // of 32 bytes, that its look-up reads of index and item
};

// See HopscotchView. A new key takes the next free entry behind its home; where that is no
// neighbour, entries between are moved to make one free that is, as in the original. (MemcachedGPU
// would throw a key out instead, and the look-ups would not all hit.)
class HopscotchTable {
 public:
  // For `homes` homes, or for a twentieth more again and again until every key finds a place.
  HopscotchTable(const std::vector<Located>& items, uint32_t homes);

  const std::vector<uint64_t>& entries() const { return entries_; }
  uint32_t homes() const { return homes_; }

  // What a look-up of the item reads: entries by the sector up to the one that leads to it, and
  // of items whose entries fit what the key's size and comparison take. REQUIRES: it is there.
  uint32_t sectors_of(const Located& item, uint32_t key_size) const;

 private:
  bool fill(const std::vector<Located>& items, uint32_t homes);
  bool insert(const Located& item);

  uint32_t homes_ = 0;
  std::vector<uint64_t> entries_;
  std::vector<uint32_t> home_;  // of the keys in them
};

// Sectors of an item that a comparison of its key reads: the second half of the header and the key,
// by 16 bytes.
uint32_t key_sectors(uint64_t offset, uint32_t key_size);

}  // namespace warpcache::ablation
