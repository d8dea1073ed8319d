// SPDX-License-Identifier: Apache-2.0
#include "hitrate/set_policies.h"

#include <cmath>

namespace warpcache::sim {

void SetSieve::inserted(uint32_t set, uint32_t way, uint64_t) {
  queues_.push(set, way);
  if (hands_[set] != kAtOldest) ++hands_[set];
}

uint32_t SetSieve::victim(uint32_t set) {
  uint32_t place = hands_[set];
  if (place >= queues_.length(set)) place = queues_.length(set) - 1;
  while (true) {
    const uint32_t way = queues_.way_at(set, place);
    if ((used_[set] >> way & 1) == 0) {
      hands_[set] = static_cast<uint8_t>(place);
      return way;
    }
    used_[set] &= ~(uint64_t{1} << way);
    place = place > 0 ? place - 1 : queues_.length(set) - 1;
  }
}

void SetSieve::removed(uint32_t set, uint32_t way) {
  const uint32_t place = queues_.place_of_way(set, way);
  queues_.remove_at(set, place);
  used_[set] &= ~(uint64_t{1} << way);
  uint8_t& hand = hands_[set];
  if (hand == kAtOldest || place > hand) return;
  // A key newer than the hand's: all older ones move up. The hand's own: it goes on to the next
  // newer.
  hand = hand > 0 ? static_cast<uint8_t>(hand - 1) : kAtOldest;
}

SetS3Fifo::SetS3Fifo(uint32_t sets, uint32_t ways, uint64_t)
    : ways_(ways),
      small_target_(std::max(1u, static_cast<uint32_t>(std::lround(ways * 0.1)))),
      ghosts_max_(ways > small_target_ ? ways - small_target_ : 0),
      small_(sets, ways),
      main_(sets, ways),
      uses_(uint64_t{sets} * ways),
      fingerprints_(uses_.size()),
      ghosts_(uses_.size()),
      ghost_next_(sets) {}

void SetS3Fifo::hit(uint32_t set, uint32_t way) {
  uint8_t& uses = uses_[at(set, way)];
  uses = std::min<uint8_t>(static_cast<uint8_t>(uses + 1), kUsesMax);
}

bool SetS3Fifo::take_ghost(uint32_t set, uint16_t fingerprint) {
  for (uint32_t i = 0; i < ghosts_max_; ++i) {
    if (ghosts_[at(set, i)] != fingerprint) continue;
    ghosts_[at(set, i)] = 0;
    return true;
  }
  return false;
}

void SetS3Fifo::add_ghost(uint32_t set, uint16_t fingerprint) {
  if (ghosts_max_ == 0) return;
  ghosts_[at(set, ghost_next_[set])] = fingerprint;
  ghost_next_[set] = static_cast<uint8_t>((ghost_next_[set] + 1u) % ghosts_max_);
}

void SetS3Fifo::inserted(uint32_t set, uint32_t way, uint64_t hash) {
  const auto fingerprint = static_cast<uint16_t>((hash >> 40) | 1);
  uses_[at(set, way)] = 0;
  fingerprints_[at(set, way)] = fingerprint;
  (take_ghost(set, fingerprint) ? main_ : small_).push(set, way);
}

uint32_t SetS3Fifo::victim(uint32_t set) {
  while (small_.length(set) >= small_target_ || main_.length(set) == 0) {
    const uint32_t place = small_.length(set) - 1;
    const uint32_t way = small_.way_at(set, place);
    if (uses_[at(set, way)] < kUsesToMain || ghosts_max_ == 0) {
      add_ghost(set, fingerprints_[at(set, way)]);
      return way;
    }
    small_.remove_at(set, place);
    main_.push(set, way);
    uses_[at(set, way)] = 0;
  }
  while (true) {
    const uint32_t place = main_.length(set) - 1;
    const uint32_t way = main_.way_at(set, place);
    if (uses_[at(set, way)] == 0) return way;
    --uses_[at(set, way)];
    main_.remove_at(set, place);
    main_.push(set, way);
  }
}

void SetS3Fifo::removed(uint32_t set, uint32_t way) {
  WayQueues& queue = small_.holds(set, way) ? small_ : main_;
  queue.remove_at(set, queue.place_of_way(set, way));
}

SetTwoGenerations::SetTwoGenerations(uint32_t sets, uint32_t ways, uint64_t)
    : ways_(ways),
      young_target_(std::max(1u, ways / kYoungDivisor)),
      young_(sets, ways),
      main_(sets, ways),
      uses_(uint64_t{sets} * ways) {}

void SetTwoGenerations::hit(uint32_t set, uint32_t way) {
  uint8_t& count = uses(set, way);
  count = std::min<uint8_t>(static_cast<uint8_t>(count + 1), kUsesMax);
}

void SetTwoGenerations::inserted(uint32_t set, uint32_t way, uint64_t) {
  uses(set, way) = 0;
  young_.push(set, way);
}

uint32_t SetTwoGenerations::victim(uint32_t set) {
  while (true) {
    const bool from_young = young_.length(set) > young_target_ || main_.length(set) == 0;
    WayQueues& queue = from_young ? young_ : main_;
    const uint32_t place = queue.length(set) - 1;
    const uint32_t way = queue.way_at(set, place);
    if (uses(set, way) == 0) return way;
    if (!from_young) --uses(set, way);
    queue.remove_at(set, place);
    main_.push(set, way);
  }
}

void SetTwoGenerations::removed(uint32_t set, uint32_t way) {
  WayQueues& queue = young_.holds(set, way) ? young_ : main_;
  queue.remove_at(set, queue.place_of_way(set, way));
}

uint32_t SetDuel::victim(uint32_t set) {
  if (set % kLeadersEvery == 0) {
    lru_evictions_ = std::min(lru_evictions_ + 1, kLeadMax);
    return lru_.victim(set);
  }
  if (set % kLeadersEvery == 1) {
    lru_evictions_ = std::max(lru_evictions_ - 1, -kLeadMax);
    return sieve_.victim(set);
  }
  return prefers_sieve() ? sieve_.victim(set) : lru_.victim(set);
}

}  // namespace warpcache::sim
