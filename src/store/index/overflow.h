// SPDX-License-Identifier: Apache-2.0
//
// Overflow sets: a pair whose two sets are full gets one, so that no key is evicted while memory is
// free. They lie in the blocks of the index after the pairs, and are linked to the pair that uses
// them. Few are needed: in a round of linear hashing the pairs that are not split yet hold up to
// twice the average.
//
// All of it under the lock of the pair, except the bits that say which sets are free.
#pragma once

#include <cstdint>

#include "store/index/index.h"

namespace warpcache::store {

namespace detail {

// Takes a free overflow set of the block. 0: there is none.
WC_HD inline uint32_t take_overflow_in(const Core& core, uint32_t block) {
  constexpr uint64_t kAll = (uint64_t{1} << kBlockOverflowSets) - 1;
  uint64_t* used = &block_header(core, block)->overflow_used;
  uint64_t seen = load_relaxed(used);
  while (seen != kAll) {
    const uint32_t place = first_way(static_cast<uint32_t>(~seen & kAll));
    if (compare_exchange(used, seen, seen | uint64_t{1} << place)) {
      return block * kBlockOverflowSets + place + 1;
    }
  }
  return 0;
}

inline constexpr uint32_t kOverflowBlocksTried = 256;

}  // namespace detail

// Takes a free overflow set, empty. 0: there is none. Looks near `pair` first, then in the whole
// index: pairs that wait for their split are neighbours and need sets at the same time.
WC_HD inline uint32_t take_overflow(const Core& core, ThreadCounters& counters, const Set* pair) {
  const uint64_t offset =
      static_cast<uint64_t>(reinterpret_cast<const uint8_t*>(pair) - core.arena);
  const uint64_t blocks = (load_acquire(&core.shared->pair_count) - 1) / kBlockPairs + 1;
  const uint64_t stride = blocks <= detail::kOverflowBlocksTried ? 1 : blocks * 5 / 8 + 1;
  uint64_t block = offset / kBlockSize;
  for (uint32_t i = 0; i < detail::kOverflowBlocksTried; ++i) {
    if (block >= blocks) block %= blocks;
    const uint32_t number = detail::take_overflow_in(core, static_cast<uint32_t>(block));
    if (number != 0) {
      counters.add(StoreCounter::kOverflowSets, 1);
      return number;
    }
    block += stride;
  }
  return 0;
}

// Gives an overflow set back. REQUIRES: it is empty and no pair links to it any more.
WC_HD inline void give_overflow(const Core& core, ThreadCounters& counters, uint32_t number) {
  const uint32_t block = (number - 1) / kBlockOverflowSets;
  const uint64_t bit = uint64_t{1} << ((number - 1) % kBlockOverflowSets);
  fetch_and(&block_header(core, block)->overflow_used, ~bit);
  counters.add(StoreCounter::kOverflowSets, ~uint64_t{0});
}

// The slot says whether a key is there, for readers that come by its tag and for readers that come
// by a Candidate. So it is written last and cleared first: the key appears and disappears for all
// readers at one moment.
WC_HD inline void fill_way(Set* set, uint32_t way, uint16_t tag, Slot slot, uint32_t counter) {
  set->set_counter(way, counter);
  set->set_tag(way, tag);
  store_release(&set->slots[way], slot);
}

WC_HD inline void clear_way(Set* set, uint32_t way) {
  store_release(&set->slots[way], 0);
  set->set_tag(way, 0);
}

struct Way {
  Set* set = nullptr;
  uint32_t way = 0;
};

// The sets of a pair: both, then its overflow sets.
struct PairSets {
  Set* set[2 + kOverflowChainMax];
  uint32_t count;
};

WC_HD inline PairSets sets_of(const Core& core, Set* pair) {
  PairSets sets = {{pair, pair + 1}, 2};
  uint32_t number = load_relaxed(&pair->overflow);
  while (number != 0 && sets.count < 2 + kOverflowChainMax) {
    sets.set[sets.count++] = overflow_at(core, number);
    number = load_relaxed(&sets.set[sets.count - 1]->overflow);
  }
  return sets;
}

// Makes readers notice that keys have moved: see find_key().
WC_HD inline void change_state(Set* pair, uint32_t depth) {
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t state = load_relaxed(&pair[i].state);
    store_release(&pair[i].state, ((state & ~kStateDepthMask) | depth) + kStateVersion);
  }
}

WC_HD inline void note_moved(Set* pair) {
  change_state(pair, load_relaxed(&pair->state) & kStateDepthMask);
}

// Takes empty overflow sets out of the pair's chain and gives them back.
WC_HD inline void drop_empty_overflow(const Core& core, ThreadCounters& counters, Set* pair) {
  uint32_t dropped[kOverflowChainMax];
  uint32_t count = 0;
  Set* last = pair;
  for (uint32_t i = 0; i < kOverflowChainMax; ++i) {
    const uint32_t number = load_relaxed(&last->overflow);
    if (number == 0) break;
    Set* set = overflow_at(core, number);
    if (match_tag(*set, 0) == 0xffff) {
      store_release(&last->overflow, load_relaxed(&set->overflow));
      dropped[count++] = number;
    } else {
      last = set;
    }
  }
  if (count == 0) return;
  // A reader may be in a dropped set and follow its link, which the next owner changes: it must
  // notice.
  note_moved(pair);
  for (uint32_t i = 0; i < count; ++i) {
    store_release(&overflow_at(core, dropped[i])->overflow, 0);
    give_overflow(core, counters, dropped[i]);
  }
}

// Fills a free way with a key from the end of the pair's overflow chain, and gives sets back that
// become empty.
WC_HD inline void pull_from_overflow(const Core& core, ThreadCounters& counters, Set* pair,
                                     const Way& freed) {
  const PairSets sets = sets_of(core, pair);
  for (uint32_t i = sets.count - 1; i >= 2 && sets.set[i] != freed.set; --i) {
    const uint32_t taken = ~match_tag(*sets.set[i], 0) & 0xffff;
    if (taken == 0) continue;
    const uint32_t way = first_way(taken);
    fill_way(freed.set, freed.way, sets.set[i]->tag(way), load_relaxed(&sets.set[i]->slots[way]),
             sets.set[i]->counter(way));
    note_moved(pair);
    clear_way(sets.set[i], way);
    break;
  }
  drop_empty_overflow(core, counters, pair);
}

}  // namespace warpcache::store
