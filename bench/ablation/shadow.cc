// SPDX-License-Identifier: Apache-2.0
#include "ablation/shadow.h"

#include <algorithm>
#include <stdexcept>

namespace warpcache::ablation {

// The set of sectors that were read.
class Shadow::Sectors {
 public:
  explicit Sectors(const uint8_t* arena) : arena_(arena) {}

  void read(const void* from, uint64_t bytes) {
    const auto begin = static_cast<uint64_t>(static_cast<const uint8_t*>(from) - arena_);
    for (uint64_t sector = begin / 32; sector <= (begin + bytes - 1) / 32; ++sector) {
      if (std::find(read_.begin(), read_.end(), sector) == read_.end()) read_.push_back(sector);
    }
  }
  uint32_t count() const { return static_cast<uint32_t>(read_.size()); }

 private:
  const uint8_t* arena_;
  std::vector<uint64_t> read_;
};

Shadow::Shadow(const store::Core& core) : core_(core) {
  const auto copy = [](void* to, const void* from, uint64_t bytes) {
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "a copy of the store");
  };
  copy(&shared_, core.shared, sizeof(shared_));
  const uint64_t blocks = (pairs() + store::kBlockPairs - 1) / store::kBlockPairs;
  arena_.resize(blocks * store::kBlockSize);
  copy(arena_.data(), core.arena, arena_.size());
  // Up to the end of the last segment with an item.
  core_.arena = arena_.data();
  uint64_t last = 0;
  const auto note = [&last](const store::Set& set) {
    for (const store::Slot slot : set.slots) last = std::max(last, store::slot_offset(slot));
  };
  for (uint32_t pair = 0; pair < pairs(); ++pair) {
    note(store::pair_at(core_, pair)[0]);
    note(store::pair_at(core_, pair)[1]);
  }
  const uint64_t overflow_sets = blocks * store::kBlockOverflowSets;
  for (uint32_t i = 1; i <= overflow_sets; ++i) note(*store::overflow_at(core_, i));
  arena_.resize(((last >> core.segment_shift) + 1) << core.segment_shift);
  copy(arena_.data(), core.arena, arena_.size());
  core_.arena = arena_.data();
}

Located Shadow::locate(Bytes key) const {
  const uint64_t hash = hash_key(core_.seed, key);
  Sectors sectors(arena_.data());
  const store::Item* const item = find(hash, key, sectors);
  if (item == nullptr) throw std::runtime_error("a key is not in its place in the store");
  return {hash, core_.offset_of(item), sectors.count()};
}

// Like the kernel, find_past_l1() first; a sector that is read twice counts once.
const store::Item* Shadow::find(uint64_t hash, Bytes key, Sectors& sectors) const {
  const store::Set* const pair = store::pair_at(core_, store::pair_of(hash, pairs()));
  const store::Set* const home = pair + store::home_of(hash);
  const store::Item* item = find_in_set(home, hash, key, sectors);
  if (item != nullptr) return item;
  sectors.read(&home->state, sizeof(home->state));
  if ((home->state & store::kStateSpilled) == 0) return nullptr;
  item = find_in_set(pair + (1 - store::home_of(hash)), hash, key, sectors);
  for (const store::Set* set = pair; item == nullptr; item = find_in_set(set, hash, key, sectors)) {
    sectors.read(&set->overflow, sizeof(set->overflow));
    if (set->overflow == 0) return nullptr;
    set = store::overflow_at(core_, set->overflow);
  }
  return item;
}

const store::Item* Shadow::find_in_set(const store::Set* set, uint64_t hash, Bytes key,
                                       Sectors& sectors) const {
  sectors.read(set->tags, sizeof(set->tags));
  for (uint32_t mask = store::match_tag(*set, store::tag_of(hash)); mask != 0; mask &= mask - 1) {
    const store::Slot& slot = set->slots[store::first_way(mask)];
    sectors.read(&slot, sizeof(slot));
    if (!store::slot_fits(slot, hash)) continue;
    const store::Item* const item = core_.item_in(slot);
    const uint64_t half = sizeof(store::Item) / 2;
    sectors.read(reinterpret_cast<const uint8_t*>(item) + half, half + (key.size + 15) / 16 * 16);
    if (store::holds_key(*item, key)) return item;
  }
  return nullptr;
}

}  // namespace warpcache::ablation
