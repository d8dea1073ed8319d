// SPDX-License-Identifier: Apache-2.0
//
// How much of the memory the young generation has. It follows what comes back after its eviction:
// where a greater part of what left the young generation comes back than of what left main, items
// leave the former too early; where a smaller part does, main is worth more. A segment more keeps
// items longer in either, so equal parts mean that none gains by taking from the other.
#pragma once

#include <cstdint>

#include "store/layout/shared.h"
#include "store/reclaim/survivor.h"

namespace warpcache::store {

// Of the sealed segments, in 65536ths.
WC_HD constexpr uint32_t young_share_of_percent(uint32_t percent) { return percent * 65536 / 100; }
inline constexpr uint32_t kYoungShareStart = young_share_of_percent(8);
inline constexpr uint32_t kYoungShareMin = young_share_of_percent(4);
inline constexpr uint32_t kYoungShareMax = young_share_of_percent(40);
// From this share on the keys that are asked for change fast: accesses that were counted long ago
// say little about the next ones.
inline constexpr uint32_t kYoungShareOfDrift = young_share_of_percent(30);

WC_HD inline bool is_drift(uint32_t young_share) { return young_share >= kYoungShareOfDrift; }

// What an item pays to stay in main for another round.
WC_HD inline Spend main_spend(uint32_t young_share) {
  return is_drift(young_share) ? Spend::kAll : Spend::kOne;
}

// For maintenance alone: one thread at a time.
class YoungShare {
 public:
  // Counts what was evicted and came back since the last call, and sets shared.young_share when
  // that is enough to tell. `items` are in the index.
  WC_HD void adapt(Shared& shared, uint64_t items);
  // Bytes up to which a young item gets to main although nobody has asked for it: the mean size,
  // times four times the part of the young ones that came back lately, times the young generation's
  // part of the memory. So it is large while main is far from full: what is likely to be asked for
  // after all takes nothing from main then. From an eighth to two fifths of the mean; under drift
  // it is half of the mean.
  WC_HD uint32_t small_max(const Shared& shared, uint32_t mean) const;

 private:
  struct Counts {
    uint64_t evicted[2] = {};  // by Generation
    uint64_t returned[2] = {};
  };

  WC_HD void change(Shared& shared) const;

  Counts seen_;    // the words of Shared when they were read last
  Counts lately_;  // what older words say counts half at each change
};

// Each part begins at one of one, so while main evicts nothing the share shrinks: what main loses
// by a larger one cannot be seen. What part of main's evicted items came back is known less well:
// there are fewer. So the share stays where it is unless the parts differ by a half.
WC_HD inline void YoungShare::change(Shared& shared) const {
  const uint64_t young = (lately_.returned[0] + 1) * (lately_.evicted[1] + 1);
  const uint64_t main = (lately_.returned[1] + 1) * (lately_.evicted[0] + 1);
  uint32_t share = load_relaxed(&shared.young_share);
  if (2 * young > 3 * main) {
    share += share / 10;
  } else if (3 * young < 2 * main) {
    share -= share / 11;
  }
  if (share < kYoungShareMin) share = kYoungShareMin;
  if (share > kYoungShareMax) share = kYoungShareMax;
  store_relaxed(&shared.young_share, share);
}

WC_HD inline uint32_t YoungShare::small_max(const Shared& shared, uint32_t mean) const {
  constexpr uint64_t kReturnedFactor = 4;
  const uint64_t young = load_relaxed(&shared.young.segments);
  const uint64_t sealed = young + load_relaxed(&shared.main.segments) + 1;
  const bool drift = is_drift(load_relaxed(&shared.young_share));
  const uint64_t least = mean / (drift ? kSmallDivisorOfDrift : kSmallDivisor);
  const uint64_t most = uint64_t{mean} * 2 / 5;
  const uint64_t returned = mean * kReturnedFactor * lately_.returned[0] / (lately_.evicted[0] + 1);
  uint64_t bytes = returned * young / sealed;
  if (bytes > most) bytes = most;
  return static_cast<uint32_t>(bytes > least ? bytes : least);
}

WC_HD inline void YoungShare::adapt(Shared& shared, uint64_t items) {
  constexpr uint32_t kItemsShare = 8;  // of the items, that must have been evicted lately
  const Counts now = {
      {load_relaxed(&shared.evicted_from[0]), load_relaxed(&shared.evicted_from[1])},
      {load_relaxed(&shared.returned_from[0]), load_relaxed(&shared.returned_from[1])}};
  for (uint32_t i = 0; i < 2; ++i) {
    lately_.evicted[i] += now.evicted[i] - seen_.evicted[i];
    lately_.returned[i] += now.returned[i] - seen_.returned[i];
  }
  seen_ = now;
  if ((lately_.evicted[0] + lately_.evicted[1]) * kItemsShare < items) return;
  change(shared);
  for (uint32_t i = 0; i < 2; ++i) {
    lately_.evicted[i] /= 2;
    lately_.returned[i] /= 2;
  }
}

}  // namespace warpcache::store
