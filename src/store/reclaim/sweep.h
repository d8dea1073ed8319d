// SPDX-License-Identifier: Apache-2.0
//
// Removes dead items that are found through the index, so that expired and flushed items are no
// longer counted, wherever they lie: in an open segment, beside live items, in a chain. Other steps
// free the segments that become empty.
#pragma once

#include <cstdint>

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
    if (is_alive(core, *item, now)) return;
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

}  // namespace warpcache::store
