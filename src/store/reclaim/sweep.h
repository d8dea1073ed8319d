// SPDX-License-Identifier: Apache-2.0
//
// Removes dead items that are found through the index, so that expired and flushed items are no
// longer counted, wherever they lie: in an open segment, beside live items, in a chain. Other steps
// free the segments that become empty. Items that a flush has not concerned get the store's
// generation, so that look-ups need not ask again, and marks of flushes become free.
#pragma once

#include <cstdint>

#include "store/index/flushed.h"
#include "store/reclaim/epoch.h"
#include "store/reclaim/survivor.h"
#include "store/reclaim/worker_share.h"

namespace warpcache::store {

// A range of pairs, set by the leader.
struct SweepTask {
  PairNumber first = 0;
  uint32_t count = 0;
};

namespace detail {

// Removes the item of a way if it is dead. The free way may get an item from overflow, which is
// then looked at too.
WC_HD inline void sweep_way(const Core& core, ThreadContext& thread, Set* pair, const Way& place,
                            uint32_t now) {
  for (Slot slot = load_relaxed(&place.set->slots[place.way]); slot != 0;
       slot = load_relaxed(&place.set->slots[place.way])) {
    Item* item = core.item_in(slot);
    uint32_t generation = 0;
    if (!is_expired(*item, now) && !is_flushed_at(core, *item, generation)) {
      if (item->load_flush_generation() != generation) item->store_flush_generation(generation);
      return;
    }
    drop_locked(core, thread, pair, place, item, false);
  }
}

}  // namespace detail

// The share of one worker. For maintenance alone; requests continue meanwhile.
WC_HD inline void sweep_share(const Core& core, ThreadContext& thread, const SweepTask& task,
                              const Share& share) {
  const uint32_t now = load_relaxed(&core.shared->now);
  for (uint32_t i = share.worker; i < task.count; i += share.workers) {
    Set* pair = pair_at(core, task.first + i);
    spin_lock(&pair->lock);
    const PairSets sets = sets_of(core, pair);
    for (uint32_t j = 0; j < sets.count * kWays; ++j) {
      detail::sweep_way(core, thread, pair, {sets.set[j / kWays], j % kWays}, now);
    }
    unlock_pair(pair);
  }
}

// A pass over all pairs in ascending order, begun after a flush. Keys only move to pairs that it
// has not visited yet. So at its end no item is of an earlier generation than the store had when
// it began; when the readers that were inside then have left, nobody has such an item any more.
class FlushPass {
 public:
  WC_HD bool runs() const { return state_ == State::kRuns; }
  // Begins a pass if there was a flush that no pass has begun after. True: it begins, at pair 0.
  WC_HD bool begin(const Shared& shared) {
    const uint32_t generation = load_acquire(&shared.flush_generation);
    const uint32_t last = waits() ? generation_ : load_relaxed(&shared.folded_generation);
    if (runs() || generation == last) return false;
    generation_ = generation;
    state_ = State::kRuns;
    return true;
  }
  // All pairs have been visited.
  WC_HD void end(Shared& shared) {
    ticket_ = draw_ticket(&shared.epoch);
    state_ = State::kWaits;
  }
  WC_HD bool waits() const { return state_ == State::kWaits; }
  // `oldest_inside`: see oldest_epoch().
  WC_HD void settle(Shared& shared, uint64_t oldest_inside) {
    if (ticket_ >= oldest_inside) return;
    store_release(&shared.folded_generation, generation_);
    state_ = State::kNone;
  }

 private:
  enum class State : uint8_t { kNone, kRuns, kWaits };

  State state_ = State::kNone;
  uint32_t generation_ = 0;
  uint64_t ticket_ = 0;
};

}  // namespace warpcache::store
