// SPDX-License-Identifier: Apache-2.0
// Eviction policies within a full set. Every policy has
//   Policy(sets, ways, seed)
//   hit(set, way)             the way's key was read or replaced
//   inserted(set, way, hash)  a new key has the way
//   victim(set)               the way to evict. REQUIRES: all ways are taken
//   removed(set, way)         the way is empty now: evicted or deleted
#ifndef WARPCACHE_SIM_HITRATE_SET_POLICIES_H_
#define WARPCACHE_SIM_HITRATE_SET_POLICIES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "workload/random.h"

namespace warpcache::sim {

inline constexpr uint32_t kWaysMax = 64;

// Oldest stamp of each set's ways: by insertion or by use.
class Stamps {
 public:
  Stamps(uint32_t sets, uint32_t ways) : ways_(ways), stamps_(uint64_t{sets} * ways) {}

  void renew(uint32_t set, uint32_t way) { stamps_[uint64_t{set} * ways_ + way] = ++now_; }
  uint32_t oldest(uint32_t set) const {
    const auto begin = stamps_.begin() + static_cast<std::ptrdiff_t>(uint64_t{set} * ways_);
    return static_cast<uint32_t>(std::min_element(begin, begin + ways_) - begin);
  }
  void prefetch(uint32_t set) const { __builtin_prefetch(&stamps_[uint64_t{set} * ways_], 1); }

 private:
  uint32_t ways_;
  uint32_t now_ = 0;  // enough for 2^32 requests
  std::vector<uint32_t> stamps_;
};

class SetLru {
 public:
  SetLru(uint32_t sets, uint32_t ways, uint64_t) : stamps_(sets, ways) {}
  void hit(uint32_t set, uint32_t way) { stamps_.renew(set, way); }
  void inserted(uint32_t set, uint32_t way, uint64_t) { stamps_.renew(set, way); }
  uint32_t victim(uint32_t set) const { return stamps_.oldest(set); }
  void removed(uint32_t, uint32_t) {}
  void prefetch(uint32_t set) const { stamps_.prefetch(set); }

 private:
  Stamps stamps_;
};

class SetFifo {
 public:
  SetFifo(uint32_t sets, uint32_t ways, uint64_t) : stamps_(sets, ways) {}
  void hit(uint32_t, uint32_t) {}
  void inserted(uint32_t set, uint32_t way, uint64_t) { stamps_.renew(set, way); }
  uint32_t victim(uint32_t set) const { return stamps_.oldest(set); }
  void removed(uint32_t, uint32_t) {}
  void prefetch(uint32_t set) const { stamps_.prefetch(set); }

 private:
  Stamps stamps_;
};

class SetRandom {
 public:
  SetRandom(uint32_t, uint32_t ways, uint64_t seed) : ways_(ways), random_(seed) {}
  void hit(uint32_t, uint32_t) {}
  void inserted(uint32_t, uint32_t, uint64_t) {}
  uint32_t victim(uint32_t) { return static_cast<uint32_t>(random_.next() % ways_); }
  void removed(uint32_t, uint32_t) {}
  void prefetch(uint32_t) const {}

 private:
  uint32_t ways_;
  bench::Random random_;
};

// CLOCK: a hand moves over the ways, skips each way that was used since its last visit, and evicts
// the first one that was not.
class SetClock {
 public:
  SetClock(uint32_t sets, uint32_t ways, uint64_t) : ways_(ways), used_(sets), hands_(sets) {}
  void hit(uint32_t set, uint32_t way) { used_[set] |= uint64_t{1} << way; }
  void inserted(uint32_t, uint32_t, uint64_t) {}
  uint32_t victim(uint32_t set) {
    while (true) {
      const uint32_t way = hands_[set];
      hands_[set] = static_cast<uint8_t>((way + 1) % ways_);
      if ((used_[set] >> way & 1) == 0) return way;
      used_[set] &= ~(uint64_t{1} << way);
    }
  }
  void removed(uint32_t set, uint32_t way) { used_[set] &= ~(uint64_t{1} << way); }
  void prefetch(uint32_t set) const { __builtin_prefetch(&used_[set], 1); }

 private:
  uint32_t ways_;
  std::vector<uint64_t> used_;  // one bit a way
  std::vector<uint8_t> hands_;
};

// The ways of each set in the order of their insertion.
class WayQueues {
 public:
  WayQueues(uint32_t sets, uint32_t ways)
      : ways_(ways), order_(uint64_t{sets} * ways), lengths_(sets) {}

  uint32_t length(uint32_t set) const { return lengths_[set]; }
  // Place 0 is the newest. REQUIRES: place < length(set).
  uint32_t way_at(uint32_t set, uint32_t place) const { return queue(set)[place]; }
  // REQUIRES: the way is in the queue.
  uint32_t place_of_way(uint32_t set, uint32_t way) const {
    return static_cast<uint32_t>(std::find(queue(set), queue(set) + lengths_[set], way) -
                                 queue(set));
  }
  bool holds(uint32_t set, uint32_t way) const { return place_of_way(set, way) < lengths_[set]; }
  void push(uint32_t set, uint32_t way) {
    uint8_t* const begin = &order_[uint64_t{set} * ways_];
    std::copy_backward(begin, begin + lengths_[set], begin + lengths_[set] + 1);
    *begin = static_cast<uint8_t>(way);
    ++lengths_[set];
  }
  void remove_at(uint32_t set, uint32_t place) {
    uint8_t* const begin = &order_[uint64_t{set} * ways_];
    std::copy(begin + place + 1, begin + lengths_[set], begin + place);
    --lengths_[set];
  }
  void prefetch(uint32_t set) const { __builtin_prefetch(queue(set), 1); }

 private:
  const uint8_t* queue(uint32_t set) const { return &order_[uint64_t{set} * ways_]; }

  uint32_t ways_;
  std::vector<uint8_t> order_;
  std::vector<uint8_t> lengths_;
};

// SIEVE (Zhang et al., NSDI 2024): a hand moves from the oldest to the newest key, skips keys that
// were used since its last visit, and evicts the first one that was not. Skipped keys keep their
// place.
class SetSieve {
 public:
  SetSieve(uint32_t sets, uint32_t ways, uint64_t)
      : queues_(sets, ways), used_(sets), hands_(sets, kAtOldest) {}
  void hit(uint32_t set, uint32_t way) { used_[set] |= uint64_t{1} << way; }
  void inserted(uint32_t set, uint32_t way, uint64_t);
  uint32_t victim(uint32_t set);
  void removed(uint32_t set, uint32_t way);
  void prefetch(uint32_t set) const {
    queues_.prefetch(set);
    __builtin_prefetch(&used_[set], 1);
  }

 private:
  static constexpr uint8_t kAtOldest = 255;

  WayQueues queues_;
  std::vector<uint64_t> used_;
  std::vector<uint8_t> hands_;  // the place that is looked at next
};

// S3-FIFO (Yang et al., SOSP 2023) within a set: a tenth of the ways, at least one, is the small
// queue for new keys; a key used twice there moves to the main one. A ghost queue of as many
// fingerprints as the main queue has ways sends a returning key to the main queue at once. With one
// way it is FIFO.
class SetS3Fifo {
 public:
  SetS3Fifo(uint32_t sets, uint32_t ways, uint64_t);
  void hit(uint32_t set, uint32_t way);
  void inserted(uint32_t set, uint32_t way, uint64_t hash);
  uint32_t victim(uint32_t set);
  void removed(uint32_t set, uint32_t way);
  void prefetch(uint32_t set) const {
    small_.prefetch(set);
    main_.prefetch(set);
    __builtin_prefetch(&fingerprints_[uint64_t{set} * ways_], 1);
  }

 private:
  static constexpr uint8_t kUsesMax = 3;
  static constexpr uint8_t kUsesToMain = 2;

  uint64_t at(uint32_t set, uint32_t i) const { return uint64_t{set} * ways_ + i; }
  bool take_ghost(uint32_t set, uint16_t fingerprint);
  void add_ghost(uint32_t set, uint16_t fingerprint);

  uint32_t ways_;
  uint32_t small_target_;
  uint32_t ghosts_max_;
  WayQueues small_;
  WayQueues main_;
  std::vector<uint8_t> uses_;           // one a way
  std::vector<uint16_t> fingerprints_;  // likewise
  std::vector<uint16_t> ghosts_;        // ways_ a set, in a ring; 0: none
  std::vector<uint8_t> ghost_next_;
};

// The server's eviction (docs/decisions/0003-store.md) within a set, without its segments: new keys
// are young; a fifth of the ways, at least one, may be. The oldest young key moves to the main
// generation if it was used, the oldest main one stays for one of its uses, up to three of which
// are remembered; all others go.
class SetTwoGenerations {
 public:
  SetTwoGenerations(uint32_t sets, uint32_t ways, uint64_t);
  void hit(uint32_t set, uint32_t way);
  void inserted(uint32_t set, uint32_t way, uint64_t);
  uint32_t victim(uint32_t set);
  void removed(uint32_t set, uint32_t way);
  void prefetch(uint32_t set) const {
    young_.prefetch(set);
    main_.prefetch(set);
  }

 private:
  static constexpr uint8_t kUsesMax = 3;
  static constexpr uint32_t kYoungDivisor = 5;

  uint8_t& uses(uint32_t set, uint32_t way) { return uses_[uint64_t{set} * ways_ + way]; }

  uint32_t ways_;
  uint32_t young_target_;
  WayQueues young_;
  WayQueues main_;
  std::vector<uint8_t> uses_;  // one a way
};

// LRU against SIEVE by set duelling (Qureshi et al., ISCA 2007): a few sets always use LRU, as many
// use SIEVE; the other sets use the policy that has recently evicted less.
class SetDuel {
 public:
  SetDuel(uint32_t sets, uint32_t ways, uint64_t seed)
      : lru_(sets, ways, seed), sieve_(sets, ways, seed) {}
  void hit(uint32_t set, uint32_t way) {
    lru_.hit(set, way);
    sieve_.hit(set, way);
  }
  void inserted(uint32_t set, uint32_t way, uint64_t hash) {
    lru_.inserted(set, way, hash);
    sieve_.inserted(set, way, hash);
  }
  uint32_t victim(uint32_t set);
  void removed(uint32_t set, uint32_t way) {
    lru_.removed(set, way);
    sieve_.removed(set, way);
  }
  void prefetch(uint32_t set) const {
    lru_.prefetch(set);
    sieve_.prefetch(set);
  }

  bool prefers_sieve() const { return lru_evictions_ > 0; }

 private:
  static constexpr uint32_t kLeadersEvery = 32;  // sets, of which one leads for each policy
  static constexpr int32_t kLeadMax = 1024;

  SetLru lru_;
  SetSieve sieve_;
  int32_t lru_evictions_ = 0;  // by LRU's leaders, beyond those by SIEVE's; saturates
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_SET_POLICIES_H_
