// SPDX-License-Identifier: Apache-2.0
//
// Emptying segments, one at a time: what is dead is dropped, of what is alive a rule keeps some and
// evicts the rest. Keeping means copying to the open segment of the copier's own lane. An emptied
// segment goes to limbo, and from there to the free ones when every batch that could have seen it
// has ended and no pin holds it.
//
// For maintenance alone, one thread at a time. Requests go on meanwhile.
#pragma once

#include <cstdint>

#include "store/store_ref.h"

namespace warpcache::store {

// Which live items stay when a segment is emptied.
struct KeepRule {
  uint32_t counter_min = 0;  // used at least as often; 0: all stay, above 3: none does
  Generation to = Generation::kMain;
  bool spend = false;  // a stay costs one access of the counter
};

enum class Emptied : uint8_t {
  kDone,     // it is in limbo
  kNotYet,   // a batch that may still write to it has not ended, or its owner holds it
  kNoSpace,  // there was nowhere to copy to; what was moved is moved
};

class Reclaimer {
 public:
  // `thread` is the reclaimer's own and stays the caller's.
  WC_HD Reclaimer(const Core& core, ThreadContext* thread) : core_(core), thread_(*thread) {}

  // Frees what waits in limbo and is unseen. Returns how many segments.
  WC_HD uint32_t free_limbo();
  // Segments in limbo that no pin holds: free as soon as the batches under way have ended.
  WC_HD uint32_t limbo_unpinned() const;

  // Empties a sealed segment. With `must_keep` a live item is never evicted for want of space.
  WC_HD Emptied empty_segment(SegmentId id, const KeepRule& rule, bool must_keep);
  // The same for a chain, by its head: it stays by going to the newest place of the main
  // generation. kNotYet: it stayed.
  WC_HD Emptied judge_chain(SegmentId head, const KeepRule& rule);
  // Copies a chain to other segments, so that its own become free. Evicts it if there is no space,
  // unless must_keep.
  WC_HD Emptied move_chain(SegmentId head, bool must_keep);

  // The oldest epoch that a reader is in: what was sealed or unlinked with a lower ticket is
  // unseen.
  WC_HD uint64_t oldest_inside() const {
    return oldest_epoch(core_.epochs, load_seq_cst(&core_.shared->epoch_slots));
  }
  // Whether every batch that could write to a sealed segment has ended.
  WC_HD bool walkable(SegmentId id) const;
  // Ends appending to the copier's own open segment if it is `id`.
  WC_HD bool seal_own(SegmentId id);

  WC_HD uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  enum class Fate : uint8_t { kDead, kStays, kEvicted };

  struct Judged {
    Fate fate = Fate::kDead;
    uint32_t counter = 0;
  };

  WC_HD Way locate(Set* pair, const Item* item, uint64_t hash) const;
  WC_HD Judged judge(Item* item, uint64_t hash, const KeepRule& rule);
  WC_HD void drop_locked(Set* pair, const Way& place, Item* item, bool evicted);
  WC_HD bool keep(Item* item, uint64_t hash, const KeepRule& rule, bool must_keep);
  WC_HD bool swap(Item* from, Item* to, uint64_t hash, const KeepRule& rule);
  WC_HD uint8_t* space(uint32_t bytes, Generation generation);

  Core core_;
  ThreadContext& thread_;
  SegmentId open_[2] = {kNoSegment, kNoSegment};  // by generation
  uint64_t copied_bytes_ = 0;
};

WC_HD inline uint32_t Reclaimer::free_limbo() {
  Shared& shared = *core_.shared;
  uint32_t freed = 0;
  SpinGuard guard(&shared.segment_lock);
  if (shared.limbo.oldest == kNoSegment) return 0;
  const uint64_t oldest = oldest_inside();  // after every ticket in the queue was drawn
  SegmentId next = kNoSegment;
  for (SegmentId id = shared.limbo.oldest; id != kNoSegment; id = next) {
    SegmentEntry& entry = core_.segment(id);
    next = entry.queue_newer;
    if (load_relaxed(&entry.epoch) >= oldest || load_acquire(&entry.pins) != 0) continue;
    queue_remove(core_, shared.limbo, id);
    freed += entry.chain_length;
    free_chain_locked(core_, id);
  }
  return freed;
}

WC_HD inline uint32_t Reclaimer::limbo_unpinned() const {
  Shared& shared = *core_.shared;
  uint32_t count = 0;
  SpinGuard guard(&shared.segment_lock);
  for (SegmentId id = shared.limbo.oldest; id != kNoSegment; id = core_.segment(id).queue_newer) {
    if (load_acquire(&core_.segment(id).pins) == 0) count += core_.segment(id).chain_length;
  }
  return count;
}

WC_HD inline bool Reclaimer::walkable(SegmentId id) const {
  return load_relaxed(&core_.segment(id).epoch) < oldest_inside();
}

WC_HD inline bool Reclaimer::seal_own(SegmentId id) {
  for (SegmentId& open : open_) {
    if (open != id) continue;
    seal_segment(core_, id);
    open = kNoSegment;
    return true;
  }
  return false;
}

// The way that holds this very item, if one does. REQUIRES: the pair's lock is held.
WC_HD inline Way Reclaimer::locate(Set* pair, const Item* item, uint64_t hash) const {
  const uint64_t offset = core_.offset_of(item);
  const PairSets sets = sets_of(core_, pair);
  for (uint32_t i = 0; i < sets.count; ++i) {
    for (uint32_t mask = match_tag(*sets.set[i], tag_of(hash)); mask != 0; mask &= mask - 1) {
      const uint32_t way = first_way(mask);
      if (slot_offset(load_relaxed(&sets.set[i]->slots[way])) == offset) return {sets.set[i], way};
    }
  }
  return {};
}

// Takes a located item out, as dead or as evicted. REQUIRES: the pair's lock is held.
WC_HD inline void Reclaimer::drop_locked(Set* pair, const Way& place, Item* item, bool evicted) {
  ThreadCounters& counters = *thread_.counters;
  if (evicted) {
    count_eviction(core_, counters, *item);
  } else {
    counters.add(StoreCounter::kExpired, 1);
    if ((item->load_bits() & kItemFetched) == 0) counters.add(StoreCounter::kExpiredUnfetched, 1);
  }
  remove_item(core_, thread_, pair, {item, place.set, place.way});
}

// Decides on an item and drops it unless it stays.
WC_HD inline Reclaimer::Judged Reclaimer::judge(Item* item, uint64_t hash, const KeepRule& rule) {
  Set* pair = lock_pair(core_, hash);
  const Way place = locate(pair, item, hash);
  Judged judged;
  if (place.set != nullptr) {
    judged.counter = place.set->counter(place.way);
    if (!is_alive(core_, *item, load_relaxed(&core_.shared->now))) {
      drop_locked(pair, place, item, false);
    } else if (judged.counter < rule.counter_min) {
      judged.fate = Fate::kEvicted;
      drop_locked(pair, place, item, true);
    } else {
      judged.fate = Fate::kStays;
    }
  }
  unlock_pair(pair);
  return judged;
}

// Space in the copier's open segment, or null.
WC_HD inline uint8_t* Reclaimer::space(uint32_t bytes, Generation generation) {
  SegmentId& open = open_[static_cast<uint32_t>(generation)];
  uint8_t* data = detail::append(core_, open, bytes);
  if (data != nullptr) return data;
  const SegmentId fresh = take_segments(core_, 1, 0, SegmentState::kOpen, generation);
  if (fresh == kNoSegment) return nullptr;
  if (open != kNoSegment) seal_segment(core_, open);
  open = fresh;
  return detail::append(core_, open, bytes);
}

// Puts the copy in the original's place, unless that is gone. The words that may have changed while
// the body was copied are taken now, under the lock.
WC_HD inline bool Reclaimer::swap(Item* from, Item* to, uint64_t hash, const KeepRule& rule) {
  Set* pair = lock_pair(core_, hash);
  const Way place = locate(pair, from, hash);
  if (place.set != nullptr) {
    to->store_cas(from->load_cas());
    to->store_expiry(from->load_expiry());
    to->store_access_time(from->load_access_time());
    to->store_bits(from->load_bits());
    SegmentEntry& entry = core_.segment(core_.segment_of(to));
    entry.note_expiry(to->load_expiry());
    const uint64_t bytes = item_bytes(to->key_size, to->value_size);
    if (to->chained()) {
      store_relaxed(&entry.live, static_cast<uint32_t>(bytes));
      enqueue_chain(core_, core_.segment_of(to));
    } else {
      fetch_add(&entry.live, static_cast<uint32_t>(item_footprint(*to)));
    }
    const uint32_t counter = place.set->counter(place.way);
    if (rule.spend && counter != 0) place.set->set_counter(place.way, counter - 1);
    store_release(&place.set->slots[place.way], make_slot(core_.offset_of(to), bytes, hash));
    thread_.counters->add(StoreCounter::kBytes, bytes);  // forget_item() takes them off again
    forget_item(core_, *thread_.counters, from);
  }
  unlock_pair(pair);
  return place.set != nullptr;
}

// Copies an item that stays. Without space it is evicted, or with `must_keep` left: false.
WC_HD inline bool Reclaimer::keep(Item* item, uint64_t hash, const KeepRule& rule, bool must_keep) {
  const uint32_t bytes = static_cast<uint32_t>(item_footprint(*item));
  uint8_t* data = space(bytes, rule.to);
  if (data == nullptr) {
    if (must_keep) return false;
    KeepRule none = rule;
    none.counter_min = 4;
    judge(item, hash, none);
    return true;
  }
  Item* copy = detail::init_item(data, item->key_size, item->value_size, 0, Layout::kPlain);
  copy->client_flags = item->client_flags;
  copy->flush_generation = item->flush_generation;
  mem_copy(copy->key_data(), item->key_data(), size_t{item->key_size} + item->value_size);
  if (swap(item, copy, hash, rule)) {
    thread_.counters->add(StoreCounter::kMovedItems, 1);
    thread_.counters->add(StoreCounter::kMovedBytes, bytes);
    copied_bytes_ += bytes;
  }
  return true;
}

WC_HD inline Emptied Reclaimer::empty_segment(SegmentId id, const KeepRule& rule, bool must_keep) {
  SegmentEntry& entry = core_.segment(id);
  if (!walkable(id)) return Emptied::kNotYet;
  const uint32_t used = load_relaxed(&entry.used);
  uint8_t* data = core_.segment_data(id);
  for (uint32_t at = 0; at < used;) {
    Item* item = reinterpret_cast<Item*>(data + at);
    at += static_cast<uint32_t>(item_footprint(*item));
    if (load_acquire(&item->dropped) != 0) continue;
    const uint64_t hash = hash_key(core_.seed, item->key());
    const Judged judged = judge(item, hash, rule);
    if (judged.fate == Fate::kStays && !keep(item, hash, rule, must_keep)) return Emptied::kNoSpace;
  }
  WC_ASSERT(load_acquire(&entry.live) == 0);
  retire(core_, id);
  settle_growth(core_, thread_);
  return Emptied::kDone;
}

WC_HD inline Emptied Reclaimer::judge_chain(SegmentId head, const KeepRule& rule) {
  Item* item = reinterpret_cast<Item*>(core_.segment_data(head));
  const uint64_t hash = hash_key(core_.seed, item->key());
  const Judged judged = judge(item, hash, rule);
  if (judged.fate != Fate::kStays) return Emptied::kDone;
  Set* pair = lock_pair(core_, hash);
  const Way place = locate(pair, item, hash);
  if (place.set != nullptr) {
    if (rule.spend && judged.counter != 0) place.set->set_counter(place.way, judged.counter - 1);
    SpinGuard guard(&core_.shared->segment_lock);
    queue_remove(core_, queue_of(core_, head), head);
    store_relaxed(&core_.segment(head).generation, static_cast<uint32_t>(Generation::kMain));
    queue_push(core_, core_.shared->main, head);
  }
  unlock_pair(pair);
  return Emptied::kNotYet;
}

WC_HD inline Emptied Reclaimer::move_chain(SegmentId head, bool must_keep) {
  Item* item = reinterpret_cast<Item*>(core_.segment_data(head));
  const uint64_t hash = hash_key(core_.seed, item->key());
  Allocation copy;
  const KeepRule all = {};
  if (judge(item, hash, all).fate != Fate::kStays) return Emptied::kDone;
  if (allocate_chain(core_, core_.shared->copy_reserve, item->key_size, item->value_size, 0,
                     copy) != Status::kOk) {
    if (must_keep) return Emptied::kNoSpace;
    KeepRule none;
    none.counter_min = 4;
    judge(item, hash, none);
    return Emptied::kDone;
  }
  copy.item->client_flags = item->client_flags;
  copy.item->flush_generation = item->flush_generation;
  mem_copy(copy.item->key_data(), item->key_data(), item->key_size);
  copy_value(core_, *copy.item, 0, *item);
  if (!swap(item, copy.item, hash, all)) free_chain(core_, core_.segment_of(copy.item));
  return Emptied::kDone;
}

}  // namespace warpcache::store
