// SPDX-License-Identifier: Apache-2.0
// Eviction policies for a cache in which all items compete. Nodes have a cost; costs, capacities
// and shares of them are in the unit of the cache's capacity: bytes, or entries of cost 1. Every
// policy has
//   Policy(nodes, capacity)      REQUIRES: nodes outlive it
//   arriving(key, cost)          a key that is not there is set; false: it is not to be stored
//   hit(node)                    the node was read or replaced
//   inserted(node)               the node is new; its cost is known
//   resized(node, cost)          a replacement has another cost; called before the node has it
//   victim()                     the node to evict. REQUIRES: there is one
//   evicted(node)                the node that victim() gave leaves
//   removed(node)                the node leaves for another reason
//   announce(next_use)           see Cache
#ifndef WARPCACHE_SIM_HITRATE_QUEUES_H_
#define WARPCACHE_SIM_HITRATE_QUEUES_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "hitrate/node_index.h"

namespace warpcache::sim {

struct Node : IndexNode {
  uint32_t newer = kNoNode;
  uint32_t older = kNoNode;
  uint32_t value = 0;
  uint32_t cost = 0;
  uint8_t uses = 0;
  uint8_t queue = 0;  // of several, the policy's own numbers
};

// What most policies do not need.
struct PolicyBase {
  static bool arriving(const Key&, uint64_t) { return true; }
  static void resized(uint32_t, uint64_t) {}
  static void announce(uint64_t) {}
};

// A queue that goes through nodes, and the sum of their costs.
class Queue {
 public:
  explicit Queue(std::vector<Node>* nodes) : nodes_(nodes) {}

  uint32_t oldest() const { return oldest_; }
  uint32_t length() const { return length_; }
  uint64_t cost() const { return cost_; }
  void push(uint32_t node) {
    cost_ += (*nodes_)[node].cost;
    Node& n = (*nodes_)[node];
    n.older = newest_;
    n.newer = kNoNode;
    (newest_ != kNoNode ? (*nodes_)[newest_].newer : oldest_) = node;
    newest_ = node;
    ++length_;
  }
  void remove(uint32_t node) {
    cost_ -= (*nodes_)[node].cost;
    const Node& n = (*nodes_)[node];
    (n.newer != kNoNode ? (*nodes_)[n.newer].older : newest_) = n.older;
    (n.older != kNoNode ? (*nodes_)[n.older].newer : oldest_) = n.newer;
    --length_;
  }
  void renew(uint32_t node) {
    remove(node);
    push(node);
  }
  // A node of the queue is about to have another cost.
  void resize(uint32_t node, uint64_t cost) { cost_ += cost - (*nodes_)[node].cost; }

 private:
  std::vector<Node>* nodes_;
  uint32_t newest_ = kNoNode;
  uint32_t oldest_ = kNoNode;
  uint32_t length_ = 0;
  uint64_t cost_ = 0;
};

class Lru : public PolicyBase {
 public:
  Lru(std::vector<Node>* nodes, uint64_t) : queue_(nodes) {}
  void hit(uint32_t node) { queue_.renew(node); }
  void inserted(uint32_t node) { queue_.push(node); }
  uint32_t victim() const { return queue_.oldest(); }
  void evicted(uint32_t node) { removed(node); }
  void removed(uint32_t node) { queue_.remove(node); }
  void resized(uint32_t node, uint64_t cost) { queue_.resize(node, cost); }

 private:
  Queue queue_;
};

class Fifo : public PolicyBase {
 public:
  Fifo(std::vector<Node>* nodes, uint64_t) : queue_(nodes) {}
  void hit(uint32_t) {}
  void inserted(uint32_t node) { queue_.push(node); }
  uint32_t victim() const { return queue_.oldest(); }
  void evicted(uint32_t node) { removed(node); }
  void removed(uint32_t node) { queue_.remove(node); }
  void resized(uint32_t node, uint64_t cost) { queue_.resize(node, cost); }

 private:
  Queue queue_;
};

// CLOCK: a used node gets another round.
class Clock : public PolicyBase {
 public:
  Clock(std::vector<Node>* nodes, uint64_t) : nodes_(nodes), queue_(nodes) {}
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
  void evicted(uint32_t node) { removed(node); }
  void removed(uint32_t node) { queue_.remove(node); }
  void resized(uint32_t node, uint64_t cost) { queue_.resize(node, cost); }

 private:
  std::vector<Node>* nodes_;
  Queue queue_;
};

// See SetSieve.
class Sieve : public PolicyBase {
 public:
  Sieve(std::vector<Node>* nodes, uint64_t) : nodes_(nodes), queue_(nodes) {}
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
  void evicted(uint32_t node) { removed(node); }
  void resized(uint32_t node, uint64_t cost) { queue_.resize(node, cost); }
  void removed(uint32_t node) {
    if (hand_ == node) hand_ = (*nodes_)[node].newer;
    queue_.remove(node);
  }

 private:
  std::vector<Node>* nodes_;
  Queue queue_;
  uint32_t hand_ = kNoNode;  // none: at the oldest
};

// The keys that were evicted last, up to a sum of costs.
class Ghosts {
 public:
  explicit Ghosts(uint64_t capacity) : capacity_(capacity) {}

  void add(uint64_t id, uint64_t cost);
  // Returns whether the key is among them, and removes it.
  bool take(uint64_t id);
  void set_capacity(uint64_t capacity) { capacity_ = capacity; }

 private:
  struct Ghost {
    uint64_t id;
    uint64_t number;  // of its adding; another one than in numbers_: it was taken since
    uint64_t cost;
  };

  void drop_oldest();

  uint64_t capacity_;
  uint64_t cost_ = 0;
  uint64_t added_ = 0;
  std::deque<Ghost> ghosts_;  // the oldest first
  std::unordered_map<uint64_t, Ghost> by_id_;
};

// S3-FIFO (Yang et al., SOSP 2023): a small queue of a tenth of the capacity for new keys. Its
// oldest key moves to the main queue if it was used twice there; else it goes, and is remembered as
// a ghost until keys for nine tenths of the capacity were evicted after it. A ghost that returns
// goes to the main queue. Main is FIFO; a key stays for each of up to three uses.
//
// Until the first eviction new keys go to main once small is full, as in the authors' programs.
struct S3FifoOptions {
  bool fill_main = true;    // false: all keys go to small while the cache fills
  bool ghosts_full = true;  // false: as many ghosts as main holds now
};

class S3Fifo : public PolicyBase {
 public:
  S3Fifo(std::vector<Node>* nodes, uint64_t capacity, S3FifoOptions options = {})
      : nodes_(nodes),
        options_(options),
        small_max_(std::max<uint64_t>(capacity / kSmallDivisor, 1)),
        main_max_(capacity - small_max_),
        small_(nodes),
        main_(nodes),
        ghosts_(capacity * 9 / 10) {}
  bool arriving(const Key& key, uint64_t cost);
  void hit(uint32_t node) {
    uint8_t& uses = (*nodes_)[node].uses;
    uses = std::min<uint8_t>(static_cast<uint8_t>(uses + 1), kUsesMax);
  }
  void inserted(uint32_t node);
  void resized(uint32_t node, uint64_t cost) { queue_of(node).resize(node, cost); }
  uint32_t victim();
  void evicted(uint32_t node);
  void removed(uint32_t node) { queue_of(node).remove(node); }

 private:
  enum : uint8_t { kSmall, kMain };
  static constexpr uint8_t kUsesMax = 3;
  static constexpr uint8_t kUsesToMain = 2;
  static constexpr uint32_t kSmallDivisor = 10;

  Queue& queue_of(uint32_t node) { return (*nodes_)[node].queue == kSmall ? small_ : main_; }

  std::vector<Node>* nodes_;
  S3FifoOptions options_;
  uint64_t small_max_;
  uint64_t main_max_;
  Queue small_;
  Queue main_;
  Ghosts ghosts_;
  bool ghost_arrives_ = false;
  bool filling_ = true;
};

// Variants, to see what they are worth.
struct S3FifoEmptyMain : S3Fifo {
  S3FifoEmptyMain(std::vector<Node>* nodes, uint64_t capacity)
      : S3Fifo(nodes, capacity, {false, true}) {}
};
struct S3FifoFewGhosts : S3Fifo {
  S3FifoFewGhosts(std::vector<Node>* nodes, uint64_t capacity)
      : S3Fifo(nodes, capacity, {false, false}) {}
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_QUEUES_H_
