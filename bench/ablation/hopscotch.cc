// SPDX-License-Identifier: Apache-2.0
#include "ablation/hopscotch.h"

#include <algorithm>
#include <utility>

namespace warpcache::ablation {

namespace {

constexpr uint64_t kSearchMax = 512;  // entries searched for a free one

}  // namespace

uint32_t key_sectors(uint64_t offset, uint32_t key_size) {
  constexpr uint64_t kSector = 32;
  const uint64_t begin = offset + sizeof(store::Item) / 2;
  const uint64_t end = offset + sizeof(store::Item) + (key_size + 15) / 16 * 16;
  return static_cast<uint32_t>((end - 1) / kSector - begin / kSector + 1);
}

HopscotchTable::HopscotchTable(const std::vector<Located>& items, uint32_t homes) {
  while (!fill(items, homes)) homes += homes / 20 + 1;
}

// False: there was no place for a key.
bool HopscotchTable::fill(const std::vector<Located>& items, uint32_t homes) {
  homes_ = homes;
  const uint64_t count = uint64_t{homes} + kNeighbourhood - 1;
  entries_.assign((count + kEntriesInSector - 1) / kEntriesInSector * kEntriesInSector, 0);
  home_.assign(entries_.size(), 0);
  return std::all_of(items.begin(), items.end(),
                     [this](const Located& item) { return insert(item); });
}

bool HopscotchTable::insert(const Located& item) {
  const uint64_t home = hopscotch_home(item.hash, homes_);
  const uint64_t end = std::min<uint64_t>(home + kSearchMax, homes_ + kNeighbourhood - 1);
  uint64_t free = home;
  while (free < end && entries_[free] != 0) ++free;
  if (free == end) return false;
  while (free - home >= kNeighbourhood) {
    uint64_t moved = free - (kNeighbourhood - 1);
    while (moved < free && home_[moved] + kNeighbourhood <= free) ++moved;
    if (moved == free) return false;
    entries_[free] = std::exchange(entries_[moved], 0);
    home_[free] = home_[moved];
    free = moved;
  }
  entries_[free] = item.offset / store::kItemGranule | item.hash >> kTagBit << kTagBit;
  home_[free] = static_cast<uint32_t>(home);
  return true;
}

uint32_t HopscotchTable::sectors_of(const Located& item, uint32_t key_size) const {
  const uint64_t home = hopscotch_home(item.hash, homes_);
  uint32_t sectors = 0;
  for (uint64_t at = home; at < home + kNeighbourhood; ++at) {
    if (at == home || at % kEntriesInSector == 0) ++sectors;
    if (!entry_fits(entries_[at], item.hash)) continue;
    const uint64_t offset = store::slot_offset(entries_[at]);
    sectors += key_sectors(offset, key_size);
    if (offset == item.offset) break;
  }
  return sectors;
}

}  // namespace warpcache::ablation
