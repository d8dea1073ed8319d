// SPDX-License-Identifier: Apache-2.0
//
// Freeing retired segments before maintenance does. For stores in the host's memory: who replaces
// large values writes again to memory that was written a moment ago, which the caches still hold,
// instead of walking through all free memory until maintenance frees the rest.
#pragma once

#include <cstdint>

#include "store/log/segments.h"
#include "store/reclaim/epoch.h"

namespace warpcache::store {

// Frees those of the oldest `chains_max` retired segments and chains that no reader can see and no
// pin holds. Any thread, inside an epoch or not; as Reclaimer::free_retired(), which has no bound.
inline void free_some_retired(const Core& core, uint32_t chains_max) {
  Shared& shared = *core.shared;
  if (load_relaxed(&shared.retired.segments) == 0) return;
  SpinGuard guard(&shared.segment_lock);
  // Read after all tickets in the queue were drawn.
  const uint64_t oldest = oldest_epoch(core.epochs, load_seq_cst(&shared.epoch_slots), 0, 1);
  SegmentId id = shared.retired.oldest;
  for (uint32_t i = 0; i < chains_max && id != kNoSegment; ++i) {
    const SegmentEntry& entry = core.segment(id);
    const SegmentId next = entry.queue_newer;
    if (load_relaxed(&entry.epoch) >= oldest) return;
    if (load_acquire(&entry.pins) == 0) {
      queue_remove(core, shared.retired, id);
      free_chain_locked(core, id);
    }
    id = next;
  }
}

}  // namespace warpcache::store
