// SPDX-License-Identifier: Apache-2.0
// A model of the eviction that the store had before docs/decisions/0018, to try other thresholds
// than its own: items in a log of segments, a young and a main generation, two-bit access counters,
// compaction. What the model leaves out: index growth, several writers, items above half a segment
// (these are not stored), epochs.
#ifndef WARPCACHE_SIM_HITRATE_TWO_GENERATIONS_H_
#define WARPCACHE_SIM_HITRATE_TWO_GENERATIONS_H_

#include <cstdint>
#include <vector>

#include "hitrate/cache.h"
#include "hitrate/costs.h"
#include "hitrate/node_index.h"
#include "hitrate/queues.h"

namespace warpcache::sim {

struct Thresholds {
  uint32_t young_percent = 20;  // of the sealed segments
  uint32_t waste_percent = 25;  // of a segment, from which it is compacted rather than another
                                // evicted
  uint32_t counter_max = 3;     // accesses that are remembered
  uint32_t counter_min = 1;     // accesses with which an item stays
  // Beyond the store: evicted young items that are remembered, of the capacity; one that returns is
  // stored with counter_min accesses.
  uint32_t ghost_percent = 0;
  // Likewise: an item needs an access more for each by_size times that its size is twice the mean,
  // and as many less where it is smaller. 0: size does not matter.
  uint32_t by_size = 0;
};

class TwoGenerations final : public Cache {
 public:
  // REQUIRES: capacity >= kSegments * 4 (entries), or as many items of bytes.
  TwoGenerations(uint64_t capacity, const Costs& costs, const Thresholds& thresholds);

  bool get(const Key& key, uint32_t* value) override;
  void set(const Key& key, const Entry& entry) override;
  bool erase(const Key& key) override;
  uint64_t items() const override { return index_.items(); }
  void prefetch(uint64_t hash) const override { index_.prefetch(hash); }

  uint64_t moved() const override { return copied_; }

  static constexpr uint32_t kSegments = 1024;

 private:
  enum class State : uint8_t { kFree, kOpen, kSealed };
  enum Generation : uint8_t { kYoung, kMain };

  struct ItemNode : IndexNode {
    uint32_t segment = 0;
    uint32_t place = 0;  // in the segment
    uint32_t cost = 0;
    uint32_t value = 0;
    uint8_t uses = 0;
  };
  struct Segment {
    std::vector<uint32_t> nodes;  // in the order of appending; some no longer here
    uint64_t used = 0;
    uint64_t live = 0;
    uint64_t sealed_at = 0;  // order of sealing
    State state = State::kFree;
    Generation generation = kYoung;
  };
  // Which items stay when a segment is emptied.
  struct Keep {
    uint32_t uses_min;  // above counter_max: none
    Generation to;
    bool spend;  // a stay costs one access
  };
  // Open segments: the writer's, and the copier's by generation.
  enum Opened : uint8_t { kWriter, kCopierYoung, kCopierMain, kOpenedCount };

  static constexpr uint32_t kNoSegment = ~uint32_t{0};
  static constexpr uint32_t kCopyReserve = 2;

  bool here(uint32_t node, uint32_t segment, uint32_t place) {
    return index_[node].segment == segment && index_[node].place == place;
  }
  bool open(Opened which, uint32_t reserve);
  bool append(Opened which, uint32_t node, uint32_t reserve);
  void forget(uint32_t node);
  void reclaim();
  void step();
  bool compact(uint32_t victim);
  void evict();
  void empty(uint32_t id, const Keep& keep);
  uint32_t oldest(Generation generation) const;
  uint32_t most_wasteful() const;
  uint32_t count(Generation generation) const;
  uint32_t uses_needed(uint64_t cost, const Keep& keep) const;

  Costs costs_;
  Thresholds thresholds_;
  uint64_t segment_size_;
  NodeIndex<ItemNode> index_;
  std::vector<Segment> segments_;
  std::vector<uint32_t> free_;
  uint32_t open_[kOpenedCount] = {kNoSegment, kNoSegment, kNoSegment};
  Ghosts ghosts_;
  uint64_t live_ = 0;  // cost of all items
  uint64_t seals_ = 0;
  uint64_t copied_ = 0;
  uint64_t fruitless_ = 0;  // copied lately without gaining as much
  uint32_t fruitless_compactions_ = 0;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_TWO_GENERATIONS_H_
