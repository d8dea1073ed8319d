// SPDX-License-Identifier: Apache-2.0
// Exact LRU hit counts for all capacities in one pass (Mattson et al., 1970), independent of the
// simulated caches: checks them, and gives whole curves.
#ifndef WARPCACHE_SIM_HITRATE_STACK_DISTANCE_H_
#define WARPCACHE_SIM_HITRATE_STACK_DISTANCE_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "traces/trace.h"

namespace warpcache::sim {

class StackDistance {
 public:
  // REQUIRES: at most `accesses` gets and sets are added.
  explicit StackDistance(uint64_t accesses) : tree_(accesses + 1) {}

  // A get that misses is followed by a set; that set is implied. `counted`: whether a get counts.
  void add(const Request& request, bool counted);

  // Of the counted gets, how many find their key in an LRU cache of `capacity` entries.
  uint64_t hits(uint64_t capacity) const;
  uint64_t gets() const { return gets_; }

 private:
  void change(uint64_t time, int32_t by);
  uint64_t keys_since(uint64_t time) const;

  std::vector<uint32_t> tree_;  // Fenwick tree over times: 1 at each key's last access
  std::unordered_map<uint64_t, uint64_t> last_access_;
  std::vector<uint64_t> at_distance_;  // counted gets, by how many other keys were used since
  uint64_t now_ = 0;
  uint64_t gets_ = 0;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_STACK_DISTANCE_H_
