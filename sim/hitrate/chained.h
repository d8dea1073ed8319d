// SPDX-License-Identifier: Apache-2.0
// Hash chaining, as in memcached: every key can be stored while the cache has free capacity, and
// the victim is chosen among all keys (dissertation 4.4.1).
#ifndef WARPCACHE_SIM_HITRATE_CHAINED_H_
#define WARPCACHE_SIM_HITRATE_CHAINED_H_

#include <cstdint>

#include "hitrate/cache.h"
#include "hitrate/costs.h"
#include "hitrate/queues.h"

namespace warpcache::sim {

// `Policy` is the order of eviction: see queues.h.
template <typename Policy>
class Chained final : public Cache {
 public:
  // REQUIRES: capacity > 0.
  Chained(uint64_t capacity, const Costs& costs)
      : capacity_(capacity),
        costs_(costs),
        index_(costs.items_max(capacity)),
        policy_(index_.nodes(), capacity) {}

  bool get(const Key& key, uint32_t* value) override {
    const uint32_t node = index_.find(key);
    if (node == kNoNode) return false;
    policy_.hit(node);
    if (value != nullptr) *value = index_[node].value;
    return true;
  }

  void set(const Key& key, const Entry& entry) override {
    const uint64_t cost = costs_.of(entry);
    uint32_t node = index_.find(key);
    if (cost > capacity_) {
      if (node != kNoNode) remove(node);
      return;
    }
    if (node != kNoNode) {
      policy_.hit(node);
      policy_.resized(node, cost);
      used_ += cost - index_[node].cost;
      index_[node].cost = static_cast<uint32_t>(cost);
    } else {
      if (!policy_.arriving(key, cost)) return;
      reclaim(cost);
      node = index_.insert(key);
      index_[node].cost = static_cast<uint32_t>(cost);
      policy_.inserted(node);
      used_ += cost;
    }
    index_[node].value = entry.value;
    // A replacement may have grown beyond the capacity.
    reclaim(0);
  }

  bool erase(const Key& key) override {
    const uint32_t node = index_.find(key);
    if (node != kNoNode) remove(node);
    return node != kNoNode;
  }

  void announce(uint64_t next_use) override { policy_.announce(next_use); }

  uint64_t items() const override { return index_.items(); }

  void prefetch(uint64_t hash) const override { index_.prefetch(hash); }

 private:
  void reclaim(uint64_t cost) {
    while (used_ + cost > capacity_) {
      const uint32_t node = policy_.victim();
      policy_.evicted(node);
      forget(node);
    }
  }

  void remove(uint32_t node) {
    policy_.removed(node);
    forget(node);
  }

  void forget(uint32_t node) {
    used_ -= index_[node].cost;
    index_.remove(node);
  }

  uint64_t capacity_;
  Costs costs_;
  NodeIndex<Node> index_;
  Policy policy_;
  uint64_t used_ = 0;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_CHAINED_H_
