// SPDX-License-Identifier: Apache-2.0
// Tables in which a key may be in one of several places after its own (dissertation 4.4.1).
#ifndef WARPCACHE_SIM_HITRATE_PROBING_H_
#define WARPCACHE_SIM_HITRATE_PROBING_H_

#include <cstdint>
#include <vector>

#include "hitrate/open_table.h"

namespace warpcache::sim {

// Strided linear probing: a key may be at its own place and every `stride` places after it, `group`
// places in all. If none is empty, the one that was used least lately is evicted.
class StridedProbing final : public OpenTable {
 public:
  static constexpr uint32_t kGroup = 16;
  static constexpr uint32_t kStride = 4;

  // REQUIRES: capacity >= kGroup * kStride.
  explicit StridedProbing(uint32_t capacity) : OpenTable(capacity) {}

  void prefetch(uint64_t hash) const override;

 private:
  uint32_t find(const Key& key) const override;
  void insert(const TableEntry& entry) override;
  uint32_t place(uint64_t hash, uint32_t i) const {
    const uint32_t place = place_of(hash, size()) + i * kStride;
    return place < size() ? place : place - size();
  }
};

// Hopscotch hashing (Herlihy et al., DISC 2008): a key is within its group, the `kGroup` places
// from its own. A free place further away, up to `kReach`, is moved near by moving other keys
// within their groups. If there is none, or it cannot be moved, the place in the group that was
// used least lately is evicted.
class Hopscotch final : public OpenTable {
 public:
  static constexpr uint32_t kGroup = 16;
  static constexpr uint32_t kReach = 512;

  // REQUIRES: capacity >= kReach.
  explicit Hopscotch(uint32_t capacity) : OpenTable(capacity), taken_(capacity / 64 + 1) {}

  void prefetch(uint64_t hash) const override;

 private:
  uint32_t find(const Key& key) const override;
  void insert(const TableEntry& entry) override;
  void put(uint32_t place, const TableEntry& entry) override;
  void remove(uint32_t place) override;
  // The distance from `home` to the first free place; kReach if there is none before.
  uint32_t free_distance(uint32_t home) const;
  // A free place nearer than `distance` from `home`, by moving a key; the same distance if none
  // may be moved.
  uint32_t hop(uint32_t home, uint32_t distance);
  uint32_t after(uint32_t place, uint32_t distance) const {
    place += distance;
    return place < size() ? place : place - size();
  }

  std::vector<uint64_t> taken_;  // one bit a place
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_PROBING_H_
