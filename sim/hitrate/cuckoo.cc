// SPDX-License-Identifier: Apache-2.0
#include "hitrate/cuckoo.h"

#include <utility>

namespace warpcache::sim {

Cuckoo::Cuckoo(uint32_t capacity, uint32_t ways, uint64_t seed)
    : OpenTable(capacity / ways * ways), ways_(ways), buckets_(capacity / ways), random_(seed) {
  path_.reserve(kDepth);
}

void Cuckoo::prefetch(uint64_t hash) const {
  const uint32_t first = first_bucket(hash);
  __builtin_prefetch(&entries_[uint64_t{first} * ways_]);
  __builtin_prefetch(&entries_[uint64_t{other_bucket(hash, first)} * ways_]);
}

uint32_t Cuckoo::find_in(uint32_t bucket, const Key& key) const {
  for (uint32_t i = 0; i < ways_; ++i) {
    if (holds(bucket * ways_ + i, key)) return bucket * ways_ + i;
  }
  return kNoPlace;
}

uint32_t Cuckoo::find(const Key& key) const {
  const uint32_t first = first_bucket(key.hash);
  const uint32_t place = find_in(first, key);
  return place != kNoPlace ? place : find_in(other_bucket(key.hash, first), key);
}

uint32_t Cuckoo::free_in(uint32_t bucket) const {
  for (uint32_t i = 0; i < ways_; ++i) {
    if (empty_at(bucket * ways_ + i)) return bucket * ways_ + i;
  }
  return kNoPlace;
}

void Cuckoo::insert(const TableEntry& entry) {
  TableEntry carried = entry;
  const uint32_t first = first_bucket(entry.hash);
  uint32_t bucket = free_in(first) != kNoPlace ? first : other_bucket(entry.hash, first);
  path_.clear();
  for (uint32_t depth = 0; depth < kDepth; ++depth) {
    const uint32_t free = free_in(bucket);
    if (free != kNoPlace) return put(free, carried);
    const uint32_t way = ways_ == 1 ? 0 : static_cast<uint32_t>(random_.next() % ways_);
    const uint32_t place = bucket * ways_ + way;
    std::swap(carried, entries_[place]);
    path_.push_back({place, carried.stamp});
    bucket = other_bucket(carried.hash, bucket);
  }
  give_up(carried);
}

void Cuckoo::give_up(const TableEntry& last) {
  TableEntry carried = last;
  size_t oldest = 0;
  for (size_t i = 1; i < path_.size(); ++i) {
    if (path_[i].stamp < path_[oldest].stamp) oldest = i;
  }
  for (size_t i = path_.size(); i-- > oldest + 1;) std::swap(carried, entries_[path_[i].place]);
}

}  // namespace warpcache::sim
