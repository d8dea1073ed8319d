// SPDX-License-Identifier: Apache-2.0
//
// Emptying segments, one at a time: dead items are dropped; of the live ones a rule keeps some and
// evicts the rest. Keeping means copying to the open segment of the copier. An emptied segment is
// retired, and becomes free when every batch that may have seen it has ended and no pin holds it.
//
// For maintenance alone: one thread at a time, with the help of a worker group. Requests continue
// meanwhile.
#pragma once

#include <cstdint>

#include "store/reclaim/worker_group.h"

namespace warpcache::store {

enum class Emptied : uint8_t {
  kDone,     // it is retired
  kNotYet,   // a batch that may still write to it has not ended, or its owner holds it
  kNoSpace,  // no space to copy to; what was moved stays moved
};

class Reclaimer {
 public:
  // `thread` and `worker_group` belong to the caller; only the reclaimer uses them.
  WC_HD Reclaimer(const Core& core, ThreadContext* thread, WorkerGroup* worker_group)
      : core_(core), thread_(*thread), worker_group_(*worker_group) {}

  // Frees the retired segments that no batch can see. Returns how many.
  WC_HD uint32_t free_retired();
  // Retired segments without a pin: they become free when the current batches have ended.
  WC_HD uint32_t retired_unpinned() const;

  // Empties a sealed segment. With `must_keep` a live item is never evicted for want of space.
  WC_HD Emptied empty_segment(SegmentId id, const KeepRule& rule, bool must_keep);
  // The same for a chain, given its head. A chain that stays moves to the newest place of the main
  // generation, without a copy: kNotYet.
  WC_HD Emptied judge_chain(SegmentId head, const KeepRule& rule);
  // Retires one of the `newest` last sealed young segments of which nothing is alive, if there is
  // one.
  WC_HD void retire_dead(uint32_t newest);
  // Copies a chain to other segments, so that its own become free. Without space it is evicted,
  // unless must_keep.
  WC_HD Emptied move_chain(SegmentId head, bool must_keep);
  // The same for all chains that have their tails in `wanted`. kNotYet: there is none, or a reader
  // or an owner holds one.
  WC_HD Emptied move_tails(SegmentId wanted, bool must_keep);

  // The oldest epoch that a reader is in: no reader sees what was sealed or unlinked with a lower
  // ticket.
  WC_HD uint64_t oldest_inside();
  // Every batch that could write to this sealed segment has ended.
  WC_HD bool walkable(SegmentId id) {
    return load_relaxed(&core_.segment(id).epoch) < oldest_inside();
  }
  // Seals the copier's own open segment if it is `id`.
  WC_HD bool seal_own(SegmentId id);
  WC_HD void seal_all();

  WC_HD uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  WC_HD bool walk_items(const KeepRule& rule, bool must_keep);
  WC_HD uint32_t list_item(uint32_t at);
  WC_HD uint32_t list_items(uint32_t at);
  WC_HD bool place_stays(Generation generation);
  WC_HD uint32_t stays_before(uint32_t space) const;

  Core core_;
  ThreadContext& thread_;
  WorkerGroup& worker_group_;
  SegmentId open_[2] = {kNoSegment, kNoSegment};  // by generation
  uint64_t copied_bytes_ = 0;
};

WC_HD inline uint64_t Reclaimer::oldest_inside() {
  worker_group_.oldest_epoch = UINT64_MAX;
  worker_group_.run(core_, thread_, Task::kOldestEpoch);
  return worker_group_.oldest_epoch;
}

WC_HD inline uint32_t Reclaimer::free_retired() {
  Shared& shared = *core_.shared;
  uint32_t freed = 0;
  SpinGuard guard(&shared.segment_lock);
  if (shared.retired.oldest == kNoSegment) return 0;
  const uint64_t oldest = oldest_inside();  // read after all tickets in the queue were drawn
  SegmentId next = kNoSegment;
  for (SegmentId id = shared.retired.oldest; id != kNoSegment; id = next) {
    SegmentEntry& entry = core_.segment(id);
    next = entry.queue_newer;
    // Later ones in the queue have higher tickets. (Two of the same moment may be in the wrong
    // order; one of them waits a little longer.)
    if (load_relaxed(&entry.epoch) >= oldest) break;
    if (load_acquire(&entry.pins) != 0) continue;
    queue_remove(core_, shared.retired, id);
    freed += entry.chain_length;
    free_chain_locked(core_, id);
  }
  return freed;
}

WC_HD inline uint32_t Reclaimer::retired_unpinned() const {
  Shared& shared = *core_.shared;
  uint32_t count = 0;
  SpinGuard guard(&shared.segment_lock);
  if (load_acquire(&shared.pinned_segments) == 0) return shared.retired.segments;
  for (SegmentId id = shared.retired.oldest; id != kNoSegment; id = core_.segment(id).queue_newer) {
    if (load_acquire(&core_.segment(id).pins) == 0) count += core_.segment(id).chain_length;
  }
  return count;
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

WC_HD inline void Reclaimer::seal_all() {
  for (SegmentId& open : open_) {
    if (open != kNoSegment) seal_segment(core_, open);
    open = kNoSegment;
  }
}

// --- Segments of many items

// Lists the next item from `at` on that is not known to be dropped. A leader without workers
// decides on each item before it looks at the next one. Returns where the item after it begins.
WC_HD inline uint32_t Reclaimer::list_item(uint32_t at) {
  Walk& walk = worker_group_.walk;
  for (walk.count = 0; at < walk.used && walk.count == 0;) {
    const Item* item = walk.item_at(at);
    if (load_acquire(&item->dropped) == 0) walk.items[walk.count++] = at;
    at += static_cast<uint32_t>(item_footprint(*item));
  }
  return at;
}

// Lists the items of a batch for the workers.
WC_HD inline uint32_t Reclaimer::list_items(uint32_t at) {
  Walk& walk = worker_group_.walk;
  const uint32_t used = walk.used;
  const uint16_t* sizes = walk.sizes;
  uint32_t count = 0;
  while (at < used && count < kWalkMax) {
    if (at >= walk.window_end) {
      walk.window = at;
      walk.window_end = at + (used - at < kWindowBytes ? used - at : kWindowBytes);
      worker_group_.run(core_, thread_, Task::kSizes);
    }
    const uint32_t window = walk.window;
    const uint32_t window_end = walk.window_end;
    while (at < window_end && count < kWalkMax) {
      walk.items[count++] = at;
      at += uint32_t{sizes[(at - window) / kItemGranule]} * kItemGranule;
    }
  }
  walk.count = count;
  return at;
}

// How many bytes of the items that stay fit into `space`, without cutting an item.
WC_HD inline uint32_t Reclaimer::stays_before(uint32_t space) const {
  const Walk& walk = worker_group_.walk;
  if (walk.stay_bytes() <= space) return walk.stay_bytes();
  // Binary search for the first item that ends after `space`; offsets increase.
  uint32_t low = 0;
  uint32_t high = walk.stay_count() - 1;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (walk.stay[middle].at + walk.stay[middle].bytes > space) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return walk.stay[low].at;
}

// Takes space for the items that stay: the rest of the copier's open segment, then a new one.
// False: not for all of them.
WC_HD inline bool Reclaimer::place_stays(Generation generation) {
  Walk& walk = worker_group_.walk;
  SegmentId& open = open_[static_cast<uint32_t>(generation)];
  const uint32_t total = walk.stay_bytes();
  const uint32_t space =
      open == kNoSegment ? 0 : core_.segment_size() - load_relaxed(&core_.segment(open).used);
  walk.split = stays_before(space);
  walk.place[0] = walk.split == 0 ? nullptr : detail::append(core_, open, walk.split);
  walk.place[1] = nullptr;
  if (walk.split == total) return true;
  const SegmentId fresh = take_segment(core_, 0, SegmentState::kOpen, generation);
  if (fresh == kNoSegment) return false;
  if (open != kNoSegment) seal_segment(core_, open);
  open = fresh;
  walk.place[1] = detail::append(core_, open, total - walk.split);
  return true;
}

// Applies the rule to each item of the segment. False: some must stay, and there is no space to
// copy them to.
WC_HD inline bool Reclaimer::walk_items(const KeepRule& rule, bool must_keep) {
  Walk& walk = worker_group_.walk;
  walk.window_end = 0;
  walk.rule = rule;
  walk.must_keep = must_keep;
  for (uint32_t at = 0; at < walk.used;) {
    at = worker_group_.has_workers() ? list_items(at) : list_item(at);
    walk.stays = 0;
    walk.long_bodies = 0;
    walk.copied = 0;
    worker_group_.run(core_, thread_, Task::kJudge);
    if (walk.stay_count() == 0) continue;
    const bool placed = place_stays(rule.to);
    if (walk.long_bodies != 0) worker_group_.run(core_, thread_, Task::kCopy);
    worker_group_.run(core_, thread_, Task::kMove);
    copied_bytes_ += walk.copied;
    if (!placed && must_keep) return false;
  }
  return true;
}

WC_HD inline Emptied Reclaimer::empty_segment(SegmentId id, const KeepRule& rule, bool must_keep) {
  SegmentEntry& entry = core_.segment(id);
  if (!walkable(id)) return Emptied::kNotYet;
  // A publisher adds to `live` before it writes the slot, and nobody publishes here any more. So
  // zero means that no slot points here.
  if (load_acquire(&entry.live) != 0) {
    worker_group_.walk.data = core_.segment_data(id);
    worker_group_.walk.used = load_relaxed(&entry.used);
    if (!walk_items(rule, must_keep)) return Emptied::kNoSpace;
  }
  WC_ASSERT(load_acquire(&entry.live) == 0);
  retire(core_, id);
  settle_growth(core_, thread_);
  return Emptied::kDone;
}

WC_HD inline void Reclaimer::retire_dead(uint32_t newest) {
  Shared& shared = *core_.shared;
  SegmentId dead = kNoSegment;
  {
    SpinGuard guard(&shared.segment_lock);
    SegmentId id = shared.young.newest;
    for (uint32_t i = 0; i < newest && id != kNoSegment; ++i, id = core_.segment(id).queue_older) {
      const SegmentEntry& entry = core_.segment(id);
      const bool chain = entry.load_state() == SegmentState::kChain;
      if (!chain && load_acquire(&entry.live) == 0) dead = id;
    }
  }
  // The oldest of them: later ones follow with the next call. Without live items nothing is copied.
  if (dead != kNoSegment) (void)empty_segment(dead, {}, true);
}

// --- Chains

WC_HD inline Emptied Reclaimer::judge_chain(SegmentId head, const KeepRule& rule) {
  Item* item = chain_item(core_, head);
  const uint64_t hash = hash_key(core_.seed, item->key());
  const Judged judged = judge_item(core_, thread_, item, hash, rule);
  if (judged.fate != Fate::kStays) return Emptied::kDone;
  Set* pair = lock_pair(core_, hash);
  const Way place = detail::locate(core_, pair, item, hash);
  if (place.set != nullptr) {
    const uint32_t left = counter_after(rule, judged.counter);
    if (left != judged.counter) place.set->set_counter(place.way, left);
    SpinGuard guard(&core_.shared->segment_lock);
    queue_remove(core_, queue_of(core_, head), head);
    store_relaxed(&core_.segment(head).generation, static_cast<uint32_t>(Generation::kMain));
    queue_push(core_, core_.shared->main, head);
  }
  unlock_pair(pair);
  return Emptied::kNotYet;
}

WC_HD inline Emptied Reclaimer::move_chain(SegmentId head, bool must_keep) {
  Item* item = chain_item(core_, head);
  const uint64_t hash = hash_key(core_.seed, item->key());
  Allocation copy;
  const KeepRule all = {};
  if (judge_item(core_, thread_, item, hash, all).fate != Fate::kStays) return Emptied::kDone;
  if (allocate_chain(core_, core_.shared->copy_reserve, item->key_size, item->value_size, 0,
                     copy) != Status::kOk) {
    if (must_keep) return Emptied::kNoSpace;
    evict_item(core_, thread_, item, hash);
    return Emptied::kDone;
  }
  copy.item->client_flags = item->client_flags;
  copy.item->store_flush_generation(item->load_flush_generation());
  mem_copy(copy.item->key_data(), item->key_data(), item->key_size);
  copy_value(core_, *copy.item, 0, *item);
  if (!swap_item(core_, thread_, item, copy.item, hash, all))
    free_chain(core_, core_.segment_of(copy.item));
  return Emptied::kDone;
}

WC_HD inline Emptied Reclaimer::move_tails(SegmentId wanted, bool must_keep) {
  Emptied result = Emptied::kNotYet;
  const SegmentId top = load_relaxed(&core_.shared->segment_top);
  for (SegmentId id = load_relaxed(&core_.shared->index_segments); id < top; ++id) {
    const SegmentEntry& entry = core_.segment(id);
    if (entry.load_state() != SegmentState::kChain) continue;
    if (tail_segment(load_relaxed(&entry.pages)) != wanted) continue;
    result = move_chain(id, must_keep);
    if (result != Emptied::kDone) break;
  }
  return result;
}

}  // namespace warpcache::store
