// SPDX-License-Identifier: Apache-2.0
// Eviction policies over all items that look at more than queues: frequency, size, reuse distance.
// queues.h has the interface.
#ifndef WARPCACHE_SIM_HITRATE_SIZED_POLICIES_H_
#define WARPCACHE_SIM_HITRATE_SIZED_POLICIES_H_

#include <array>
#include <cstdint>
#include <iterator>
#include <list>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hitrate/queues.h"
#include "workload/random.h"

namespace warpcache::sim {

// GDSF (Cherkasova, HP Labs 1998): evicts the lowest priority, which is uses / cost above the
// priority of what was evicted last. With a power of the cost below one, sizes weigh less.
class Gdsf : public PolicyBase {
 public:
  Gdsf(std::vector<Node>* nodes, uint64_t, double power = 1) : nodes_(nodes), power_(power) {}
  void hit(uint32_t node);
  void inserted(uint32_t node);
  void resized(uint32_t node, uint64_t cost);
  uint32_t victim() const { return std::get<2>(*order_.begin()); }
  void evicted(uint32_t node);
  void removed(uint32_t node);

 private:
  using Place = std::tuple<double, uint64_t, uint32_t>;  // priority, last use, node

  void enter(uint32_t node, double uses, uint64_t cost);

  std::vector<Node>* nodes_;
  double power_;
  std::set<Place> order_;
  std::vector<std::pair<Place, double>> entries_;  // of each node; with its uses
  double inflation_ = 0;
  uint64_t now_ = 0;
};

// GDSF with uses / cost ^ (kPercent / 100).
template <uint32_t kPercent>
class GdsfOfPower : public Gdsf {
 public:
  GdsfOfPower(std::vector<Node>* nodes, uint64_t capacity)
      : Gdsf(nodes, capacity, kPercent / 100.0) {}
};

// Knows the future: evicts the item whose next use is farthest, and stores none that is used later
// still (Belady 1966). The bound for items of one size; by bytes a good one, not the best.
class Farthest : public PolicyBase {
 public:
  Farthest(std::vector<Node>*, uint64_t) {}
  void announce(uint64_t next_use) { next_ = next_use; }
  bool arriving(const Key&, uint64_t) const { return next_ != kNever; }
  void hit(uint32_t node);
  void inserted(uint32_t node);
  uint32_t victim() const { return std::prev(order_.end())->second; }
  void evicted(uint32_t node) { removed(node); }
  void removed(uint32_t node) { order_.erase({uses_[node], node}); }

 private:
  uint64_t next_ = 0;
  std::vector<uint64_t> uses_;  // the next one, by node
  std::set<std::pair<uint64_t, uint32_t>> order_;
};

// LIRS (Jiang and Zhang, SIGMETRICS 2002): keys asked for again soon keep 99% of the capacity. The
// others pass through a queue of 1%; the stack remembers them for a while after they have left.
class Lirs : public PolicyBase {
 public:
  Lirs(std::vector<Node>* nodes, uint64_t capacity);
  bool arriving(const Key& key, uint64_t cost);
  void hit(uint32_t node);
  void inserted(uint32_t node);
  void resized(uint32_t node, uint64_t cost);
  uint32_t victim();
  void evicted(uint32_t node);
  void removed(uint32_t node);

 private:
  enum : uint8_t { kHot, kCold };
  struct Place {
    uint64_t id;
    uint32_t node;  // kNoNode: it was evicted
    uint64_t cost;
    bool hot;
  };
  using Stack = std::list<Place>;  // the last used first

  static constexpr uint64_t kColdDivisor = 100;
  static constexpr uint64_t kRememberedFactor = 2;  // capacities of evicted keys

  void to_top(Stack::iterator place) { stack_.splice(stack_.begin(), stack_, place); }
  void push_top(uint32_t node, bool hot);
  void make_hot(uint32_t node);
  void prune();
  void cool_down(uint32_t spared);
  void forget(Stack::iterator place);

  std::vector<Node>* nodes_;
  uint64_t hot_max_;
  uint64_t remembered_max_;
  uint64_t hot_ = 0;         // cost
  uint64_t remembered_ = 0;  // cost of evicted keys in the stack
  Stack stack_;
  std::unordered_map<uint64_t, Stack::iterator> in_stack_;
  std::list<uint64_t> evicted_;  // ids in the order of eviction; some no longer in the stack
  Queue cold_;
  bool remembered_arrives_ = false;
};

// W-TinyLFU (Einziger, Friedman, Manes, TOS 2017): a window of 1% under LRU; what leaves it gets
// into the main part, a segmented LRU of 20% probation and 80% protection, if it was asked for more
// often than the item that would leave there. Frequencies are counted exactly, to 15, and halved
// after as many requests as ten times the items.
class TinyLfu : public PolicyBase {
 public:
  TinyLfu(std::vector<Node>* nodes, uint64_t capacity);
  bool arriving(const Key& key, uint64_t cost);
  void hit(uint32_t node);
  void inserted(uint32_t node);
  void resized(uint32_t node, uint64_t cost) { queue_of(node).resize(node, cost); }
  uint32_t victim();
  void evicted(uint32_t node) { removed(node); }
  void removed(uint32_t node);

 private:
  enum : uint8_t { kWindow, kProbation, kProtected };
  static constexpr uint64_t kWindowDivisor = 100;
  static constexpr uint8_t kCountMax = 15;
  static constexpr uint64_t kSampleFactor = 10;

  Queue& queue_of(uint32_t node) { return queues_[(*nodes_)[node].queue]; }
  void move(uint32_t node, uint8_t queue);
  void count(uint64_t id);
  uint8_t frequency(uint32_t node) const;
  uint32_t main_oldest() const;

  std::vector<Node>* nodes_;
  uint64_t window_max_;
  uint64_t main_max_;
  uint64_t protected_max_;
  std::array<Queue, 3> queues_;
  std::unordered_map<uint64_t, uint8_t> counts_;
  uint64_t arriving_cost_ = 0;
  uint64_t counted_ = 0;
  uint64_t items_ = 0;
};

// LHD (Beckmann, Chen, Cidon, NSDI 2018): of 64 sampled items evicts the one with the least
// expected hits for the space and time it will still take, which is learned by age and class. An
// item's class is the magnitude of its last two reuse distances.
class Lhd : public PolicyBase {
 public:
  Lhd(std::vector<Node>* nodes, uint64_t);
  void hit(uint32_t node);
  void inserted(uint32_t node);
  uint32_t victim();
  void evicted(uint32_t node);
  void removed(uint32_t node);

 private:
  static constexpr uint32_t kClasses = 16;
  static constexpr uint32_t kAges = 4096;
  static constexpr uint32_t kSamples = 64;
  static constexpr double kDecay = 0.9;
  static constexpr uint64_t kLearnEvery = 1 << 14;  // requests, or as many as there are items
  static constexpr double kOverflowShare = 0.01;    // of the events, that may be beyond kAges

  struct Info {
    uint64_t last = 0;       // the request of the last use
    uint64_t distance = 0;   // between the last two uses
    uint64_t distance2 = 0;  // and the two before
    uint32_t place = 0;      // in live_
  };
  struct Class {
    std::vector<double> hits, evictions, density;
  };

  void request();
  void learn();
  void widen_ages();
  uint32_t age_of(const Info& info) const;
  Class& class_of(const Info& info);

  std::vector<Node>* nodes_;
  std::vector<Info> infos_;  // by node
  std::vector<uint32_t> live_;
  std::array<Class, kClasses> classes_;
  bench::Random random_;
  uint64_t now_ = 0;
  uint64_t next_learning_ = kLearnEvery;
  uint32_t age_shift_ = 0;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_SIZED_POLICIES_H_
