// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ablation/kernels.h"

namespace warpcache::ablation {

// The place of a key's item.
struct Located {
  uint64_t hash = 0;
  uint64_t offset = 0;   // in the arena; 0: none, since the index is there
  uint32_t sectors = 0;  // of 32 bytes: read by its look-up in index and item
};

// See HopscotchView. A new key takes the next free entry after its home. If that is too far away,
// entries between are moved to free a nearer one, as in the original paper. (MemcachedGPU would
// evict a key instead, and not all look-ups would hit.)
class HopscotchTable {
 public:
  // With `homes` homes; while a key does not fit, with five percent more.
  HopscotchTable(const std::vector<Located>& items, uint32_t homes);

  const std::vector<uint64_t>& entries() const { return entries_; }
  uint32_t homes() const { return homes_; }

  // Sectors that a look-up of the item reads: entries up to the right one, and of items whose
  // entries match, what the comparison of size and key reads. REQUIRES: the item is there.
  uint32_t sectors_of(const Located& item, uint32_t key_size) const;

 private:
  bool fill(const std::vector<Located>& items, uint32_t homes);
  bool insert(const Located& item);

  uint32_t homes_ = 0;
  std::vector<uint64_t> entries_;
  std::vector<uint32_t> home_;  // of the keys in the entries
};

// Sectors of an item that a comparison reads: the second half of the header, and the key in pieces
// of 16 bytes.
uint32_t key_sectors(uint64_t offset, uint32_t key_size);

}  // namespace warpcache::ablation
