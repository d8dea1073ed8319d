// SPDX-License-Identifier: Apache-2.0
#include "hitrate/probing.h"

#include <algorithm>
#include <bit>

namespace warpcache::sim {

void StridedProbing::prefetch(uint64_t hash) const {
  for (uint32_t i = 0; i < kGroup; ++i) __builtin_prefetch(&entries_[place(hash, i)]);
}

uint32_t StridedProbing::find(const Key& key) const {
  for (uint32_t i = 0; i < kGroup; ++i) {
    const uint32_t at = place(key.hash, i);
    if (holds(at, key)) return at;
  }
  return kNoPlace;
}

void StridedProbing::insert(const TableEntry& entry) {
  uint32_t victim = place(entry.hash, 0);
  for (uint32_t i = 0; i < kGroup; ++i) {
    const uint32_t at = place(entry.hash, i);
    if (entries_[at].stamp < entries_[victim].stamp) victim = at;  // 0 when empty
  }
  if (!empty_at(victim)) remove(victim);
  put(victim, entry);
}

void Hopscotch::prefetch(uint64_t hash) const {
  const uint32_t home = place_of(hash, size());
  for (uint32_t i = 0; i < kGroup; i += 2) __builtin_prefetch(&entries_[after(home, i)]);
}

uint32_t Hopscotch::find(const Key& key) const {
  const uint32_t home = place_of(key.hash, size());
  for (uint32_t i = 0; i < kGroup; ++i) {
    const uint32_t at = after(home, i);
    if (holds(at, key)) return at;
  }
  return kNoPlace;
}

void Hopscotch::put(uint32_t place, const TableEntry& entry) {
  OpenTable::put(place, entry);
  taken_[place / 64] |= uint64_t{1} << (place % 64);
}

void Hopscotch::remove(uint32_t place) {
  OpenTable::remove(place);
  taken_[place / 64] &= ~(uint64_t{1} << (place % 64));
}

uint32_t Hopscotch::free_distance(uint32_t home) const {
  for (uint32_t distance = 0; distance < kReach;) {
    const uint32_t place = after(home, distance);
    const uint64_t free = ~taken_[place / 64] >> (place % 64);
    const uint32_t here = static_cast<uint32_t>(std::countr_zero(free));
    // The word ends, or the table does.
    const uint32_t left = std::min(64 - place % 64, size() - place);
    if (here < left) return std::min(distance + here, kReach);
    distance += left;
  }
  return kReach;
}

uint32_t Hopscotch::hop(uint32_t home, uint32_t distance) {
  const uint32_t free = after(home, distance);
  for (uint32_t back = kGroup - 1; back > 0; --back) {
    const uint32_t from = after(home, distance - back);
    const uint32_t own = place_of(entries_[from].hash, size());
    const uint32_t spread = free >= own ? free - own : free + size() - own;
    if (spread >= kGroup) continue;
    const TableEntry moved = entries_[from];
    remove(from);
    put(free, moved);
    return distance - back;
  }
  return distance;
}

void Hopscotch::insert(const TableEntry& entry) {
  const uint32_t home = place_of(entry.hash, size());
  uint32_t distance = free_distance(home);
  if (distance < kReach) {
    while (distance >= kGroup) {
      const uint32_t nearer = hop(home, distance);
      if (nearer == distance) break;
      distance = nearer;
    }
  }
  if (distance < kGroup) return put(after(home, distance), entry);
  uint32_t victim = home;
  for (uint32_t i = 1; i < kGroup; ++i) {
    const uint32_t at = after(home, i);
    if (entries_[at].stamp < entries_[victim].stamp) victim = at;
  }
  remove(victim);
  put(victim, entry);
}

}  // namespace warpcache::sim
