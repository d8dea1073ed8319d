// SPDX-License-Identifier: Apache-2.0
// Hash chaining, as in memcached: every key finds a place while the cache as a whole has room, and
// what is evicted is chosen among all keys (dissertation 4.4.1).
#ifndef WARPCACHE_SIM_HITRATE_CHAINED_H_
#define WARPCACHE_SIM_HITRATE_CHAINED_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "hitrate/cache.h"
#include "hitrate/queues.h"

namespace warpcache::sim {

// What entries cost: one each, or bytes.
struct Costs {
  bool bytes = false;
  uint32_t overhead = 0;  // bytes an item beside key and value

  uint64_t of(const Entry& entry) const {
    return bytes ? uint64_t{overhead} + entry.key_size + entry.value_size : 1;
  }
  // How many entries a capacity can hold, at most.
  uint32_t items_max(uint64_t capacity) const {
    const uint64_t least = bytes ? overhead + 8 : 1;
    return static_cast<uint32_t>(std::min<uint64_t>(capacity / least + 1, kItemsMax));
  }
  static constexpr uint32_t kItemsMax = 1u << 28;
};

// `Policy` is the order of eviction: see queues.h.
template <typename Policy>
class Chained final : public Cache {
 public:
  // REQUIRES: capacity > 0.
  Chained(uint64_t capacity, const Costs& costs)
      : capacity_(capacity),
        costs_(costs),
        heads_(std::bit_ceil(costs.items_max(capacity)), kNoNode),
        policy_(&nodes_) {
    nodes_.emplace_back();  // number 0 is none
  }

  bool get(const Key& key, uint32_t* value) override {
    const uint32_t node = find(key);
    if (node == kNoNode) return false;
    policy_.hit(node);
    if (value != nullptr) *value = nodes_[node].value;
    return true;
  }

  void set(const Key& key, const Entry& entry) override {
    const uint64_t cost = costs_.of(entry);
    uint32_t node = find(key);
    if (cost > capacity_) {
      if (node != kNoNode) remove(node);
      return;
    }
    if (node != kNoNode) {
      policy_.hit(node);
      used_ += cost - nodes_[node].cost;
    } else {
      make_room(cost);
      node = insert(key);
      used_ += cost;
    }
    nodes_[node].cost = static_cast<uint32_t>(cost);
    nodes_[node].value = entry.value;
    // A replacement may have grown beyond the capacity.
    make_room(0);
  }

  bool erase(const Key& key) override {
    const uint32_t node = find(key);
    if (node != kNoNode) remove(node);
    return node != kNoNode;
  }

  uint64_t items() const override { return items_; }

  void prefetch(uint64_t hash) const override { __builtin_prefetch(&heads_[chain_of(hash)]); }

 private:
  uint32_t chain_of(uint64_t hash) const {
    return static_cast<uint32_t>(hash & (heads_.size() - 1));
  }

  uint32_t find(const Key& key) const {
    uint32_t node = heads_[chain_of(key.hash)];
    while (node != kNoNode && nodes_[node].id != key.id) node = nodes_[node].next_in_chain;
    return node;
  }

  void make_room(uint64_t cost) {
    while (used_ + cost > capacity_) remove(policy_.victim());
  }

  uint32_t insert(const Key& key) {
    uint32_t node = free_;
    if (node != kNoNode) {
      free_ = nodes_[node].next_in_chain;
    } else {
      node = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
    }
    nodes_[node].id = key.id;
    nodes_[node].hash = static_cast<uint32_t>(key.hash);
    uint32_t& head = heads_[chain_of(key.hash)];
    nodes_[node].next_in_chain = head;
    head = node;
    ++items_;
    policy_.inserted(node);
    return node;
  }

  void remove(uint32_t node) {
    policy_.removed(node);
    uint32_t* link = &heads_[chain_of(nodes_[node].hash)];
    while (*link != node) link = &nodes_[*link].next_in_chain;
    *link = nodes_[node].next_in_chain;
    nodes_[node].next_in_chain = free_;
    free_ = node;
    used_ -= nodes_[node].cost;
    --items_;
  }

  uint64_t capacity_;
  Costs costs_;
  std::vector<uint32_t> heads_;
  std::vector<Node> nodes_;
  Policy policy_;
  uint32_t free_ = kNoNode;
  uint64_t used_ = 0;
  uint64_t items_ = 0;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_CHAINED_H_
