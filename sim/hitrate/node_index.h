// SPDX-License-Identifier: Apache-2.0
// A hash table with chains whose nodes are numbered and stay where they are.
#ifndef WARPCACHE_SIM_HITRATE_NODE_INDEX_H_
#define WARPCACHE_SIM_HITRATE_NODE_INDEX_H_

#include <bit>
#include <cstdint>
#include <vector>

#include "hitrate/cache.h"

namespace warpcache::sim {

inline constexpr uint32_t kNoNode = 0;

struct IndexNode {
  uint64_t id = 0;
  uint32_t hash = 0;  // its lower half
  uint32_t next_in_chain = kNoNode;
};

// `NodeType` derives from IndexNode.
template <typename NodeType>
class NodeIndex {
 public:
  explicit NodeIndex(uint32_t items_max) : heads_(std::bit_ceil(items_max), kNoNode) {
    nodes_.emplace_back();  // number 0 is none
  }

  NodeType& operator[](uint32_t node) { return nodes_[node]; }
  std::vector<NodeType>* nodes() { return &nodes_; }
  uint64_t items() const { return items_; }

  // kNoNode: not there.
  uint32_t find(const Key& key) const {
    uint32_t node = heads_[chain_of(key.hash)];
    while (node != kNoNode && nodes_[node].id != key.id) node = nodes_[node].next_in_chain;
    return node;
  }

  // A new node, with key and chain alone set. REQUIRES: the key is not there.
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
    return node;
  }

  void remove(uint32_t node) {
    uint32_t* link = &heads_[chain_of(nodes_[node].hash)];
    while (*link != node) link = &nodes_[*link].next_in_chain;
    *link = nodes_[node].next_in_chain;
    nodes_[node].next_in_chain = free_;
    free_ = node;
    --items_;
  }

  void prefetch(uint64_t hash) const { __builtin_prefetch(&heads_[chain_of(hash)]); }

 private:
  uint32_t chain_of(uint64_t hash) const {
    return static_cast<uint32_t>(hash & (heads_.size() - 1));
  }

  std::vector<uint32_t> heads_;
  std::vector<NodeType> nodes_;
  uint32_t free_ = kNoNode;
  uint64_t items_ = 0;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_NODE_INDEX_H_
