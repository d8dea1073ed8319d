// SPDX-License-Identifier: Apache-2.0
// MemcachedGPU's hash table (dissertation 4.4.1): a key belongs to one set of some ways; when all
// are taken, one of them is evicted.
#ifndef WARPCACHE_SIM_HITRATE_SET_ASSOCIATIVE_H_
#define WARPCACHE_SIM_HITRATE_SET_ASSOCIATIVE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hitrate/cache.h"
#include "hitrate/set_policies.h"
#include "store/layout/set.h"

namespace warpcache::sim {

// `Policy` decides which way leaves a full set: see set_policies.h.
template <typename Policy>
class SetAssociative final : public Cache {
 public:
  // REQUIRES: 1 <= ways <= kWaysMax, capacity >= ways. Capacity is rounded down to whole sets.
  SetAssociative(uint64_t capacity, uint32_t ways, uint64_t seed)
      : ways_(ways),
        sets_(static_cast<uint32_t>(capacity / ways)),
        tags_(uint64_t{sets_} * ways),
        ids_(tags_.size()),
        values_(tags_.size()),
        policy_(sets_, ways, seed) {}

  bool get(const Key& key, uint32_t* value) override {
    const uint32_t set = place_of(key.hash, sets_);
    const uint32_t way = find(set, key);
    if (way == kNoWay) return false;
    policy_.hit(set, way);
    if (value != nullptr) *value = values_[at(set, way)];
    return true;
  }

  void set(const Key& key, const Entry& entry) override {
    const uint32_t set = place_of(key.hash, sets_);
    uint32_t way = find(set, key);
    if (way != kNoWay) {
      policy_.hit(set, way);
    } else {
      way = take_way(set);
      tags_[at(set, way)] = store::tag_of(key.hash);
      ids_[at(set, way)] = key.id;
      policy_.inserted(set, way, key.hash);
      ++items_;
    }
    values_[at(set, way)] = entry.value;
  }

  bool erase(const Key& key) override {
    const uint32_t set = place_of(key.hash, sets_);
    const uint32_t way = find(set, key);
    if (way == kNoWay) return false;
    remove(set, way);
    return true;
  }

  uint64_t items() const override { return items_; }

  void prefetch(uint64_t hash) const override {
    const uint64_t first = at(place_of(hash, sets_), 0);
    __builtin_prefetch(&tags_[first]);
    __builtin_prefetch(&ids_[first]);
    policy_.prefetch(place_of(hash, sets_));
  }

 private:
  static constexpr uint16_t kEmpty = 0;  // no key's tag
  static constexpr uint32_t kNoWay = ~uint32_t{0};

  uint64_t at(uint32_t set, uint32_t way) const { return uint64_t{set} * ways_ + way; }

  uint32_t find(uint32_t set, const Key& key) const {
    const uint16_t tag = store::tag_of(key.hash);
    const uint64_t first = at(set, 0);
    for (uint32_t way = 0; way < ways_; ++way) {
      if (tags_[first + way] == tag && ids_[first + way] == key.id) return way;
    }
    return kNoWay;
  }

  void remove(uint32_t set, uint32_t way) {
    policy_.removed(set, way);
    tags_[at(set, way)] = kEmpty;
    --items_;
  }

  uint32_t take_way(uint32_t set) {
    const auto begin = tags_.begin() + static_cast<std::ptrdiff_t>(at(set, 0));
    const auto free = std::find(begin, begin + ways_, kEmpty);
    if (free != begin + ways_) return static_cast<uint32_t>(free - begin);
    const uint32_t way = policy_.victim(set);
    remove(set, way);
    return way;
  }

  uint32_t ways_;
  uint32_t sets_;
  std::vector<uint16_t> tags_;
  std::vector<uint64_t> ids_;
  std::vector<uint32_t> values_;
  Policy policy_;
  uint64_t items_ = 0;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_SET_ASSOCIATIVE_H_
