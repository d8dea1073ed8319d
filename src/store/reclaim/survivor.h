// SPDX-License-Identifier: Apache-2.0
//
// What emptying a segment does with one item: decide, and put a copy in its place. For maintenance
// alone; several of its threads may do it at the same time, to different items. Requests continue
// meanwhile.
#pragma once

#include <cstdint>

#include "store/store_ref.h"

namespace warpcache::store {

// What staying costs an item.
enum class Spend : uint8_t {
  kNothing,
  kOne,  // one of its counted accesses
  kAll,  // all: to stay once more it must be used again
};

// Parts of the mean size: an item of that many bytes is small.
inline constexpr uint32_t kSmallDivisor = 8;
inline constexpr uint32_t kSmallDivisorOfDrift = 2;  // for young items, while keys change fast

// Which live items stay when a segment is emptied.
struct KeepRule {
  uint32_t counter_min = 0;  // accesses that an item needs to stay; 0: all stay, above 3: none does
  Generation to = Generation::kMain;
  Spend spend = Spend::kNothing;
  // The index keeps a ghost of what is evicted, and this many in a set; 0: none.
  uint32_t ghosts = 0;
  Generation from = Generation::kMain;  // where the evicted items were
  uint32_t mean =
      0;  // bytes of an item; not 0: larger items need more accesses, smaller ones fewer
  uint32_t small_max = 0;  // bytes; items up to that size need one fewer, where `mean` is not 0
};

// An item's counted accesses after it has stayed.
WC_HD inline uint32_t counter_after(const KeepRule& rule, uint32_t counter) {
  if (rule.spend == Spend::kAll) return 0;
  return rule.spend == Spend::kOne && counter != 0 ? counter - 1 : counter;
}

// The accesses that an item of this size needs to stay: one more for 8 times the mean, two more for
// 64 times; one less up to small_max. An item that needs none stays in any case. Such items take
// the same part of the memory at most that small_max is of the mean: with more of them the mean is
// smaller, and they need one.
WC_HD inline uint32_t accesses_needed(const KeepRule& rule, uint64_t bytes) {
  const uint32_t usual = rule.counter_min;
  if (rule.mean == 0) return usual;
  const uint64_t mean = rule.mean;
  if (bytes >= 8 * mean) return usual + (bytes >= 64 * mean ? 2 : 1);
  return bytes <= rule.small_max ? usual - 1 : usual;
}

enum class Fate : uint8_t { kDead, kStays, kEvicted };

struct Judged {
  Fate fate = Fate::kDead;
  uint32_t counter = 0;
};

namespace detail {

// The way of a set that points to this very item. REQUIRES: the pair's lock is held.
WC_HD inline Way locate_in(const Core& core, Set* set, const Item* item, uint64_t hash) {
  const uint64_t offset = core.offset_of(item);
  for (uint32_t mask = match_tag_locked(*set, tag_of(hash)); mask != 0; mask &= mask - 1) {
    const uint32_t way = first_way(mask);
    if (slot_offset(load_relaxed(&set->slots[way])) == offset) return {set, way};
  }
  return {};
}

// Likewise, of a pair and its overflow sets.
WC_HD inline Way locate(const Core& core, Set* pair, const Item* item, uint64_t hash) {
  Set* const home = pair + home_of(hash);
  Way place = locate_in(core, home, item, hash);
  if (place.set != nullptr || (load_relaxed(&home->state) & kStateSpilled) == 0) return place;
  const PairSets sets = sets_of(core, pair);
  for (uint32_t i = 0; i < sets.count && place.set == nullptr; ++i) {
    if (sets.set[i] != home) place = locate_in(core, sets.set[i], item, hash);
  }
  return place;
}

// Removes a located item, as dead or as evicted. REQUIRES: the pair's lock is held.
WC_HD inline void drop_locked(const Core& core, ThreadContext& thread, Set* pair, const Way& place,
                              Item* item, bool evicted) {
  ThreadCounters& counters = *thread.counters;
  if (evicted) {
    count_eviction(core, counters, *item);
  } else {
    counters.add(StoreCounter::kExpired, 1);
    if ((item->load_bits() & kItemFetched) == 0) counters.add(StoreCounter::kExpiredUnfetched, 1);
  }
  remove_item(core, thread, pair, {item, place.set, place.way});
}

// is_alive() for a holder of the pair's lock. Expiry and generation change only under it, so the
// loads need no order among themselves.
WC_HD inline bool is_alive_locked(const Core& core, const Item& item) {
  const Shared& shared = *core.shared;
  if (has_expired(load_relaxed(&item.expiry), load_relaxed(&shared.now))) return false;
  if (WC_LIKELY(item.load_flush_generation() == load_relaxed(&shared.flush_generation))) {
    return true;
  }
  return !is_flushed(core, item);
}

// Copies the words that may have changed while the body was copied. Nobody can find the copy yet:
// what publishes it orders these stores.
WC_HD inline void copy_words(Item* to, const Item* from) {
  to->init_words(load_relaxed(&from->cas), load_relaxed(&from->expiry), load_relaxed(&from->bits));
  to->store_access_time(from->load_access_time());
  to->store_flush_generation(from->load_flush_generation());
}

// The slot of `from`, in one piece, points to its copy now. Only maintenance asks for these words,
// and not before this thread has given the pair's lock back.
WC_HD inline void forget_moved(const Core& core, Item* from) {
  const uint32_t footprint = static_cast<uint32_t>(item_footprint(*from));
  add_relaxed(&core.segment(core.segment_of(from)).live, ~footprint + 1);
  store_relaxed(&from->dropped, 1);
}

}  // namespace detail

// The index remembers an item that is evicted. REQUIRES: the pair's lock is held.
WC_HD inline void remember_item(const Core& core, Set* pair, uint64_t hash, const KeepRule& rule) {
  const uint64_t generation = rule.from == Generation::kMain ? kGhostOfMain : 0;
  pair[home_of(hash)].add_ghost(ghost_of(hash) | generation, rule.ghosts);
  add_relaxed(&core.shared->evicted_from[static_cast<uint32_t>(rule.from)], 1);
}

// Decides on an item, and drops it unless it stays.
WC_HD inline Judged judge_item(const Core& core, ThreadContext& thread, Item* item, uint64_t hash,
                               const KeepRule& rule) {
  Set* pair = lock_pair(core, hash);
  const Way place = detail::locate(core, pair, item, hash);
  Judged judged;
  if (place.set != nullptr) {
    const uint32_t needed = accesses_needed(rule, item_bytes(item->key_size, item->value_size));
    judged.counter = place.set->counter(place.way);
    if (detail::is_alive_locked(core, *item)) {
      judged.fate = judged.counter < needed ? Fate::kEvicted : Fate::kStays;
    }
    const bool evicted = judged.fate == Fate::kEvicted;
    if (evicted && rule.ghosts != 0) remember_item(core, pair, hash, rule);
    // In one place: a device has the code only once.
    if (judged.fate != Fate::kStays) detail::drop_locked(core, thread, pair, place, item, evicted);
  }
  unlock_pair(pair);
  return judged;
}

// Evicts an item for which there is no space.
WC_HD inline void evict_item(const Core& core, ThreadContext& thread, Item* item, uint64_t hash) {
  KeepRule none;
  none.counter_min = 4;
  judge_item(core, thread, item, hash, none);
}

// Replaces the original by its copy, unless the original is gone. A device waits at each store with
// release for all stores before it, so there is one: that of the slot.
WC_HD inline bool swap_item(const Core& core, ThreadContext& thread, Item* from, Item* to,
                            uint64_t hash, const KeepRule& rule) {
  Set* pair = lock_pair(core, hash);
  const Way place = detail::locate(core, pair, from, hash);
  if (place.set != nullptr) {
    detail::copy_words(to, from);
    SegmentEntry& entry = core.segment(core.segment_of(to));
    entry.note_expiry(load_relaxed(&to->expiry));
    const uint64_t bytes = item_bytes(to->key_size, to->value_size);
    if (to->chained()) {
      store_relaxed(&entry.live, static_cast<uint32_t>(bytes));
      enqueue_chain(core, core.segment_of(to));
    } else {
      add_relaxed(&entry.live, static_cast<uint32_t>(item_footprint(*to)));
    }
    const uint32_t counter = place.set->counter(place.way);
    const uint32_t left = counter_after(rule, counter);
    if (left != counter) place.set->set_counter(place.way, left);
    store_release(&place.set->slots[place.way], make_slot(core.offset_of(to), bytes, hash));
    if (from->chained()) {
      thread.counters->add(StoreCounter::kBytes, bytes);  // forget_item() subtracts them again
      forget_item(core, *thread.counters, from);
    } else {
      detail::forget_moved(core, from);
    }
  }
  unlock_pair(pair);
  return place.set != nullptr;
}

}  // namespace warpcache::store
