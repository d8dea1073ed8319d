// SPDX-License-Identifier: Apache-2.0
//
// Changes of the index: publishing and unlinking. All of it under the lock of one pair.
//
// For a moment a slot and its tag may disagree (fill_way(), clear_way()). That misleads no reader:
// a reader trusts only the whole key of the item that the slot points to.
#pragma once

#include <cstdint>

#include "store/index/copies.h"
#include "store/index/eviction_log.h"
#include "store/index/flushed.h"
#include "store/index/overflow.h"
#include "store/log/allocate.h"
#include "store/observer.h"

namespace warpcache::store {

// A free way for a key with this home: in the pair, or in an overflow set that is added for it.
// Returns no way if there is no free overflow set. Marks the home as spilled where the way is
// outside of it.
WC_HD inline Way free_way(const Core& core, ThreadCounters& counters, Set* pair, uint32_t home) {
  const uint32_t in_home = match_tag(pair[home], 0);
  if (in_home != 0) return {pair + home, first_way(in_home)};
  Set* home_set = pair + home;
  store_release(&home_set->state, load_relaxed(&home_set->state) | kStateSpilled);
  const uint32_t in_buddy = match_tag(pair[1 - home], 0);
  if (in_buddy != 0) return {pair + (1 - home), first_way(in_buddy)};
  Set* last = pair;
  for (uint32_t i = 0; i < kOverflowChainMax; ++i) {
    const uint32_t number = load_relaxed(&last->overflow);
    if (number == 0) {
      const uint32_t added = take_overflow(core, counters, pair);
      if (added == 0) return {};
      store_release(&last->overflow, added);
      return {overflow_at(core, added), 0};
    }
    last = overflow_at(core, number);
    const uint32_t free = match_tag(*last, 0);
    if (free != 0) return {last, first_way(free)};
  }
  return {};
}

// Subtracts an item from the counters. Its slot no longer points to it.
WC_HD inline void forget_item(const Core& core, ThreadCounters& counters, Item* item) {
  const SegmentId id = core.segment_of(item);
  SegmentEntry& entry = core.segment(id);
  counters.add(StoreCounter::kBytes, ~item_bytes(item->key_size, item->value_size) + 1);
  if (item->chained()) {
    store_relaxed(&entry.live, 0);
    retire(core, id);
    return;
  }
  fetch_sub(&entry.live, static_cast<uint32_t>(item_footprint(*item)));
  store_release(&item->dropped,
                1);  // last: a walker that sees it skips the item without a look-up
}

// Removes a key; its way is free. REQUIRES: the pair's lock is held; `found` was found under it.
WC_HD inline void unlink_item(const Core& core, ThreadContext& thread, const Found& found) {
  drop_copy(core, *found.item);
  clear_way(found.set, found.way);
  forget_item(core, *thread.counters, found.item);
  thread.counters->add(StoreCounter::kItems, ~uint64_t{0});
  --thread.new_items;
}

// Removes a key whose way is not needed for another one: a key may move there from overflow.
WC_HD inline void remove_item(const Core& core, ThreadContext& thread, Set* pair,
                              const Found& found) {
  unlink_item(core, thread, found);
  if (load_relaxed(&pair->overflow) != 0)
    pull_from_overflow(core, *thread.counters, pair, {found.set, found.way});
}

// Counts why a live item leaves.
WC_HD inline void count_eviction(const Core& core, ThreadCounters& counters, const Item& item) {
  counters.add(StoreCounter::kEvicted, 1);
  if ((item.load_bits() & kItemFetched) == 0) counters.add(StoreCounter::kEvictedUnfetched, 1);
  if (item.load_expiry() != 0) counters.add(StoreCounter::kEvictedNonzero, 1);
#if !defined(__CUDA_ARCH__)
  if (core.shared->observer != nullptr) {
    core.shared->observer->evicted(item, load_relaxed(&core.shared->now));
  }
#else
  if (WC_UNLIKELY(core.shared->evicted_mail != nullptr)) report_eviction(core, item);
  EvictionLog* const log = eviction_log(core);
  if (WC_UNLIKELY(log != nullptr)) log_eviction(log, &item, load_relaxed(&core.shared->now));
#endif
}

// Evicts one item because the index has no way for a key. (All other evictions empty a segment.)
// The way is free afterwards.
WC_HD inline void evict_way(const Core& core, ThreadContext& thread, const Way& place) {
  Item* item = core.item_in(load_relaxed(&place.set->slots[place.way]));
  count_eviction(core, *thread.counters, *item);
  thread.counters->add(StoreCounter::kEvictedInPair, 1);
  unlink_item(core, thread, {item, place.set, place.way});
}

// The way of a full set with the fewest accesses.
WC_HD inline Way least_used(Set* set) {
  uint32_t victim = 0;
  for (uint32_t way = 1; way < kWays; ++way) {
    if (set->counter(way) < set->counter(victim)) victim = way;
  }
  return {set, victim};
}

WC_HD inline bool is_expired(const Item& item, uint32_t now) {
  return has_expired(item.load_expiry(), now);
}

WC_HD inline bool is_alive(const Core& core, const Item& item, uint32_t now) {
  if (is_expired(item, now)) return false;
  if (WC_LIKELY(item.load_flush_generation() == load_relaxed(&core.shared->flush_generation))) {
    return true;
  }
  return !is_flushed(core, item);
}

namespace detail {

// What an item gets when it is published. Before anyone can find it: a chain is found by its
// segment, not only by the index.
WC_HD inline void stamp_item(const Core& core, Item* item, uint32_t flush_generation) {
  item->store_flush_generation(flush_generation);
  item->store_access_time(load_relaxed(&core.shared->now));
}

// The part of publish_item() and publish_counted_item() that follows.
WC_HD inline void link_item(const Core& core, ThreadContext& thread, Set* pair, uint64_t hash,
                            Item* item, const Found& existing) {
  ThreadCounters& counters = *thread.counters;
  const uint32_t now = load_relaxed(&core.shared->now);
  const uint64_t bytes = item_bytes(item->key_size, item->value_size);
  counters.add(StoreCounter::kTotalItems, 1);
  counters.add(StoreCounter::kBytes, bytes);
  const Slot slot = make_slot(core.offset_of(item), bytes, hash);
  if (existing) {
    if (!is_alive(core, *existing.item, now)) {
      counters.add(StoreCounter::kReclaimed, 1);
      existing.set->set_counter(existing.way, 0);
    }
    drop_copy(core, *existing.item);
    store_release(&existing.set->slots[existing.way], slot);
    forget_item(core, counters, existing.item);
    return;
  }
  Way place = free_way(core, counters, pair, home_of(hash));
  if (place.set == nullptr) {
    place = least_used(pair + home_of(hash));
    evict_way(core, thread, place);
  }
  // An item that was evicted and comes back has been used since.
  const Remembered remembered = pair[home_of(hash)].take_ghost(ghost_of(hash));
  const bool returns = remembered != Remembered::kNot;
  if (returns) add_relaxed(&core.shared->returned_from[remembered == Remembered::kMain ? 1 : 0], 1);
  fill_way(place.set, place.way, tag_of(hash), slot, returns ? 1 : 0);
  counters.add(StoreCounter::kItems, 1);
  ++thread.new_items;
}

}  // namespace detail

// Puts an item into the index: it replaces `existing`, or is a new key where nothing was found.
// REQUIRES: the pair's lock is held; `existing` was found under it; key, value and words of the
// item are final; `flush_generation` was read under the lock.
WC_HD inline void publish_item(const Core& core, ThreadContext& thread, Set* pair, uint64_t hash,
                               Item* item, const Found& existing, uint32_t flush_generation) {
  detail::stamp_item(core, item, flush_generation);
  SegmentEntry& entry = core.segment(core.segment_of(item));
  entry.note_expiry(item->load_expiry());
  if (item->chained()) {
    const uint64_t bytes = item_bytes(item->key_size, item->value_size);
    store_relaxed(&entry.live, static_cast<uint32_t>(bytes));
    enqueue_chain(core, core.segment_of(item));
  } else {
    fetch_add(&entry.live, static_cast<uint32_t>(item_footprint(*item)));
  }
  detail::link_item(core, thread, pair, hash, item, existing);
}

// Puts an item into the index whose segment counts it already: see log/item_run.h. REQUIRES: as
// publish_item(), and the expiry is that which the item got its space with.
WC_HD inline void publish_counted_item(const Core& core, ThreadContext& thread, Set* pair,
                                       uint64_t hash, Item* item, const Found& existing,
                                       uint32_t flush_generation) {
  detail::stamp_item(core, item, flush_generation);
  detail::link_item(core, thread, pair, hash, item, existing);
}

}  // namespace warpcache::store
