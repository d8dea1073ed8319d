// SPDX-License-Identifier: Apache-2.0
//
// Removing dead items where they are found in the index, so that what has expired or been flushed
// is counted no longer, wherever it lies: in an open segment, beside live items, in a chain. The
// segments that become empty are freed by others.
#pragma once

#include <cstdint>

#include "store/reclaim/survivor.h"
#include "store/reclaim/worker_share.h"

namespace warpcache::store {

// A range of pairs. Set by the leader.
struct SweepTask {
  PairNumber first = 0;
  uint32_t count = 0;
};

namespace detail {

// A way that becomes free may take an item from overflow, which is looked at in its turn.
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

// A worker's share. For maintenance alone; requests go on meanwhile.
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
