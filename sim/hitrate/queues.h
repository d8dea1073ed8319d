// SPDX-License-Identifier: Apache-2.0
// Eviction policies for a cache in which all items compete. Every policy has
//   Policy(nodes)    REQUIRES: nodes outlive it
//   hit(node)        the node was read or replaced
//   inserted(node)   the node is new
//   victim()         the node to evict. REQUIRES: there is one
//   removed(node)    the node was evicted or deleted
#ifndef WARPCACHE_SIM_HITRATE_QUEUES_H_
#define WARPCACHE_SIM_HITRATE_QUEUES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hitrate/node_index.h"

namespace warpcache::sim {

struct Node : IndexNode {
  uint32_t newer = kNoNode;
  uint32_t older = kNoNode;
  uint32_t value = 0;
  uint32_t cost = 0;
  uint8_t uses = 0;
  bool in_small = false;
};

// A queue that goes through nodes.
class Queue {
 public:
  explicit Queue(std::vector<Node>* nodes) : nodes_(nodes) {}

  uint32_t oldest() const { return oldest_; }
  uint32_t length() const { return length_; }
  void push(uint32_t node) {
    Node& n = (*nodes_)[node];
    n.older = newest_;
    n.newer = kNoNode;
    (newest_ != kNoNode ? (*nodes_)[newest_].newer : oldest_) = node;
    newest_ = node;
    ++length_;
  }
  void remove(uint32_t node) {
    const Node& n = (*nodes_)[node];
    (n.newer != kNoNode ? (*nodes_)[n.newer].older : newest_) = n.older;
    (n.older != kNoNode ? (*nodes_)[n.older].newer : oldest_) = n.newer;
    --length_;
  }
  void renew(uint32_t node) {
    remove(node);
    push(node);
  }

 private:
  std::vector<Node>* nodes_;
  uint32_t newest_ = kNoNode;
  uint32_t oldest_ = kNoNode;
  uint32_t length_ = 0;
};

class Lru {
 public:
  explicit Lru(std::vector<Node>* nodes) : queue_(nodes) {}
  void hit(uint32_t node) { queue_.renew(node); }
  void inserted(uint32_t node) { queue_.push(node); }
  uint32_t victim() const { return queue_.oldest(); }
  void removed(uint32_t node) { queue_.remove(node); }

 private:
  Queue queue_;
};

class Fifo {
 public:
  explicit Fifo(std::vector<Node>* nodes) : queue_(nodes) {}
  void hit(uint32_t) {}
  void inserted(uint32_t node) { queue_.push(node); }
  uint32_t victim() const { return queue_.oldest(); }
  void removed(uint32_t node) { queue_.remove(node); }

 private:
  Queue queue_;
};

// CLOCK: a used node gets another round.
class Clock {
 public:
  explicit Clock(std::vector<Node>* nodes) : nodes_(nodes), queue_(nodes) {}
  void hit(uint32_t node) { (*nodes_)[node].uses = 1; }
  void inserted(uint32_t node) {
    (*nodes_)[node].uses = 0;
    queue_.push(node);
  }
  uint32_t victim() {
    while ((*nodes_)[queue_.oldest()].uses != 0) {
      (*nodes_)[queue_.oldest()].uses = 0;
      queue_.renew(queue_.oldest());
    }
    return queue_.oldest();
  }
  void removed(uint32_t node) { queue_.remove(node); }

 private:
  std::vector<Node>* nodes_;
  Queue queue_;
};

// See SetSieve.
class Sieve {
 public:
  explicit Sieve(std::vector<Node>* nodes) : nodes_(nodes), queue_(nodes) {}
  void hit(uint32_t node) { (*nodes_)[node].uses = 1; }
  void inserted(uint32_t node) {
    (*nodes_)[node].uses = 0;
    queue_.push(node);
  }
  uint32_t victim() {
    if (hand_ == kNoNode) hand_ = queue_.oldest();
    while ((*nodes_)[hand_].uses != 0) {
      (*nodes_)[hand_].uses = 0;
      const uint32_t newer = (*nodes_)[hand_].newer;
      hand_ = newer != kNoNode ? newer : queue_.oldest();
    }
    return hand_;
  }
  void removed(uint32_t node) {
    if (hand_ == node) hand_ = (*nodes_)[node].newer;
    queue_.remove(node);
  }

 private:
  std::vector<Node>* nodes_;
  Queue queue_;
  uint32_t hand_ = kNoNode;  // none: at the oldest
};

// Fingerprints of recently evicted keys, in buckets: a fingerprint may be dropped early.
class Ghosts {
 public:
  void add(uint32_t fingerprint, uint32_t remembered);
  // Returns whether it is among the last `remembered` added ones, and removes it.
  bool take(uint32_t fingerprint, uint32_t remembered);

 private:
  struct Ghost {
    uint32_t fingerprint = 0;
    uint32_t number = 0;  // of its adding, from 1; 0: none
  };
  static constexpr uint32_t kBucket = 8;

  Ghost* bucket(uint32_t fingerprint);

  std::vector<Ghost> ghosts_;
  uint32_t added_ = 0;
};

// S3-FIFO over all items; see SetS3Fifo. Queues are measured in items.
class S3Fifo {
 public:
  explicit S3Fifo(std::vector<Node>* nodes) : nodes_(nodes), small_(nodes), main_(nodes) {}
  void hit(uint32_t node) {
    uint8_t& uses = (*nodes_)[node].uses;
    uses = std::min<uint8_t>(static_cast<uint8_t>(uses + 1), kUsesMax);
  }
  void inserted(uint32_t node);
  uint32_t victim();
  void removed(uint32_t node) { ((*nodes_)[node].in_small ? small_ : main_).remove(node); }

 private:
  static constexpr uint8_t kUsesMax = 3;
  static constexpr uint8_t kUsesToMain = 2;
  static constexpr uint32_t kSmallShare = 10;  // 1/kSmallShare of the capacity

  std::vector<Node>* nodes_;
  Queue small_;
  Queue main_;
  Ghosts ghosts_;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_QUEUES_H_
