// SPDX-License-Identifier: Apache-2.0
//
// Growth of the index, one pair at a time, by the threads that add keys. index.h describes the
// order that keeps readers right. One thread splits at a time; it holds the lock of the old pair
// throughout, and writers learn the number of the new pair only when the split is complete.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "store/index/index_write.h"

namespace warpcache::store {

inline constexpr uint32_t kItemsPairTarget =
    16;  // on average; pairs not yet split in a round hold up to twice that
// Above this average the overflow sets may not be enough: threads that add keys wait for the index;
// with keep_all adding fails.
inline constexpr uint32_t kItemsPairMax = 18;
inline constexpr uint32_t kNewItemsPerCheck =
    64;  // keys that a thread adds before it checks the index
inline constexpr uint32_t kSplitsPerCheck = 16;  // a bound, so that no request waits long; 4 are
                                                 // enough to keep up

namespace detail {

// A key goes to the new pair when its pair is split at `level`. REQUIRES: the pair's lock is held.
WC_HD inline bool moves_at(const Core& core, Slot slot, uint32_t level) {
  if (level >= kSlotHashFirstBit && level < kSlotHashFirstBit + kSlotHashBits) {
    return (slot >> (48 + level - kSlotHashFirstBit) & 1) != 0;
  }
  return (hash_key(core.seed, core.item_in(slot)->key()) >> level & 1) != 0;
}

// Copies keys into the new pair: from the sets of the old pair to the same ways, from overflow to
// free ways. `homeless`, a mask per set, gets the keys for which there is no way.
WC_HD inline void fill_new_pair(const Core& core, ThreadCounters& counters, const PairSets& old,
                                Set* fresh, uint32_t level, uint32_t* homeless) {
  for (uint32_t i = 0; i < old.count; ++i) {
    homeless[i] = 0;
    for (uint32_t way = 0; way < kWays; ++way) {
      const Slot slot = load_relaxed(&old.set[i]->slots[way]);
      if (slot == 0 || !moves_at(core, slot, level)) continue;
      const uint16_t tag = old.set[i]->tag(way);
      const uint32_t home = home_of_tag(tag);
      Way place = {fresh + i, way};
      if (i >= 2) {
        place = free_way(core, counters, fresh, home);
        if (place.set == nullptr) {
          homeless[i] |= 1u << way;
          continue;
        }
      } else if (home != i) {
        store_relaxed(&fresh[home].state, load_relaxed(&fresh[home].state) | kStateSpilled);
      }
      fill_way(place.set, place.way, tag, slot, old.set[i]->counter(way));
    }
  }
}

// Removes the moved keys, and evicts those for which there was no way.
WC_HD inline void clear_moved(const Core& core, ThreadContext& thread, const PairSets& old,
                              uint32_t level, const uint32_t* homeless) {
  for (uint32_t i = 0; i < old.count; ++i) {
    for (uint32_t way = 0; way < kWays; ++way) {
      const Slot slot = load_relaxed(&old.set[i]->slots[way]);
      if (slot == 0 || !moves_at(core, slot, level)) continue;
      if ((homeless[i] >> way & 1) != 0) {
        evict_way(core, thread, {old.set[i], way});
      } else {
        clear_way(old.set[i], way);
      }
    }
  }
}

// Copies keys that lie outside their home into it where a way is free. `left`, a mask per set, gets
// their old ways.
WC_HD inline bool copy_home(Set* pair, const PairSets& sets, uint32_t* left) {
  bool any = false;
  for (uint32_t i = 0; i < sets.count; ++i) {
    left[i] = 0;
    for (uint32_t way = 0; way < kWays; ++way) {
      const uint16_t tag = sets.set[i]->tag(way);
      if (tag == 0 || home_of_tag(tag) == i) continue;
      Set* home = pair + home_of_tag(tag);
      const uint32_t free = match_tag(*home, 0);
      if (free == 0) continue;
      fill_way(home, first_way(free), tag, load_relaxed(&sets.set[i]->slots[way]),
               sets.set[i]->counter(way));
      left[i] |= 1u << way;
      any = true;
    }
  }
  return any;
}

WC_HD inline void clear_ways(const PairSets& sets, const uint32_t* masks) {
  for (uint32_t i = 0; i < sets.count; ++i) {
    for (uint32_t mask = masks[i]; mask != 0; mask &= mask - 1)
      clear_way(sets.set[i], first_way(mask));
  }
}

WC_HD inline void recompute_spilled(const Core& core, Set* pair) {
  const PairSets sets = sets_of(core, pair);
  uint32_t spilled[2] = {0, 0};
  for (uint32_t i = 0; i < sets.count; ++i) {
    for (uint32_t way = 0; way < kWays; ++way) {
      const uint16_t tag = sets.set[i]->tag(way);
      if (tag != 0 && home_of_tag(tag) != i) spilled[home_of_tag(tag)] = kStateSpilled;
    }
  }
  for (uint32_t i = 0; i < 2; ++i) {
    store_release(&pair[i].state, (load_relaxed(&pair[i].state) & ~kStateSpilled) | spilled[i]);
  }
}

WC_HD inline uint64_t pair_capacity(const Core& core, uint32_t index_segments) {
  return ((uint64_t{index_segments} << core.segment_shift) / kBlockSize) * kBlockPairs;
}

// Gives the index the next segment of the arena if that is free; else asks maintenance to free it.
WC_HD inline bool extend_index(const Core& core) {
  Shared& shared = *core.shared;
  const SegmentId next = load_relaxed(&shared.index_segments);
  if (next >= shared.segments_max || !core.is_near(next)) return false;
  bool taken = false;
  {
    SpinGuard guard(&shared.segment_lock);
    if (core.segment(next).load_state() == SegmentState::kFree &&
        shared.free_count > shared.copy_reserve) {
      unmark_free(core, next);
      reset_entry(core.segment(next), SegmentState::kIndex, Generation::kMain);
      taken = true;
    }
    store_relaxed(&shared.segment_wanted, taken ? kNoSegment : next);
  }
  if (!taken) {
    call_maintenance(core);
    return false;
  }
  uint64_t* words = reinterpret_cast<uint64_t*>(core.segment_data(next));
  for (uint32_t i = 0; i < core.segment_size() / sizeof(uint64_t); ++i) store_relaxed(&words[i], 0);
  store_release(&shared.index_segments, next + 1);
  return true;
}

}  // namespace detail

// Splits the next pair in the order of linear hashing. False: there is no memory for another pair.
// REQUIRES: the split lock is held; this thread holds no lock of a pair.
WC_HD inline bool split_next(const Core& core, ThreadContext& thread) {
  Shared& shared = *core.shared;
  const uint32_t number = load_relaxed(&shared.pair_count);
  if (number == detail::pair_capacity(core, load_relaxed(&shared.index_segments)) &&
      !detail::extend_index(core)) {
    return false;
  }
  const uint32_t level = highest_bit(number);
  Set* old = pair_at(core, number - (1u << level));
  Set* fresh = pair_at(core, number);
  const uint32_t depth = level + 1 - core.base_depth;
  SpinGuard guard(&old->lock);
  const PairSets sets = sets_of(core, old);
  uint32_t masks[2 + kOverflowChainMax];
  for (uint32_t i = 0; i < 2; ++i) {
    store_relaxed(&fresh[i].state, depth);
    // Nobody knows which of the ghosts belong there.
    for (uint32_t j = 0; j < 2; ++j) {
      store_relaxed(&fresh[i].ghosts[j], load_relaxed(&old[i].ghosts[j]));
    }
  }
  detail::fill_new_pair(core, *thread.counters, sets, fresh, level, masks);
  change_state(old, depth);
  detail::clear_moved(core, thread, sets, level, masks);
  if (detail::copy_home(old, sets, masks)) {
    change_state(old, depth);
    detail::clear_ways(sets, masks);
  }
  drop_empty_overflow(core, *thread.counters, old);
  detail::recompute_spilled(core, old);
  thread.counters->add(StoreCounter::kSplits, 1);
  store_release(&shared.pair_count, number + 1);
  return true;
}

// The number of keys that threads have reported. The sum may be below 0 for a while: a thread that
// removes keys (bulk expiry, eviction) may report before the one that added them.
WC_HD inline uint64_t reported_items(uint64_t sum) {
  return static_cast<int64_t>(sum) > 0 ? sum : 0;
}

// The index has grown so much less than the keys that overflow sets may not be enough.
WC_HD inline bool is_crowded(const Core& core) {
  const uint64_t items = reported_items(load_relaxed(&core.shared->items));
  return items / kItemsPairMax > load_relaxed(&core.shared->pair_count);
}

// There are more keys than the index is meant to hold.
WC_HD inline bool is_behind(const Core& core) {
  const uint64_t items = reported_items(load_relaxed(&core.shared->items));
  return items / kItemsPairTarget > load_relaxed(&core.shared->pair_count);
}

// Reports the keys that a thread has added, and lets the index grow accordingly. REQUIRES: this
// thread holds no lock of a pair.
WC_HD inline void settle_growth(const Core& core, ThreadContext& thread) {
  Shared& shared = *core.shared;
  const uint64_t added = static_cast<uint64_t>(static_cast<int64_t>(thread.new_items));
  const uint64_t items = reported_items(fetch_add(&shared.items, added) + added);
  thread.new_items = 0;
  for (uint32_t i = 0; i < kSplitsPerCheck; ++i) {
    if (items / kItemsPairTarget <= load_relaxed(&shared.pair_count)) return;
    if (is_crowded(core)) {
      // The holder of the lock may not be running; other threads must not add keys faster than the
      // index grows.
      spin_lock(&shared.split_lock);
    } else if (!spin_try_lock(&shared.split_lock)) {
      return;
    }
    const bool split = split_next(core, thread);
    spin_unlock(&shared.split_lock);
    if (!split) return;
  }
}

// Reports `keys` that will be added, where many threads add at the same time. Returns when the
// index has ways for them or cannot grow, so that no pair runs full while memory is free. The
// caller corrects the count when it knows how many were added.
WC_HD inline void reserve_growth(const Core& core, ThreadContext& thread, int32_t keys) {
  thread.new_items = keys;
  settle_growth(core, thread);
  uint32_t pairs = 0;
  while (is_behind(core) && pairs != load_relaxed(&core.shared->pair_count)) {
    pairs = load_relaxed(&core.shared->pair_count);
    {
      const SpinGuard wait(&core.shared->split_lock);  // until the current split is done
    }
    settle_growth(core, thread);
  }
}

}  // namespace warpcache::store
