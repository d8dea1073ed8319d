// SPDX-License-Identifier: Apache-2.0
//
// Space for the items of a warp's writers, before they write. Device code.
#pragma once

#include <cstdint>

#include "engine/cuda/warp.cuh"
#include "store/store_ref.h"

namespace warpcache::engine::cuda {

// Of the item of a lane that wants one.
__device__ inline uint32_t footprint_of(bool wants, uint32_t key_size, uint32_t value_size) {
  return wants ? static_cast<uint32_t>(store::item_footprint(key_size, uint64_t{value_size})) : 0;
}

// Space for the items of the lanes that want one, as many at once as find room together: a lock
// that each lane takes for itself is taken 32 times. It is in ThreadContext::prepared; null: there
// was none so simply. `ttl_class`: of `expiry`. REQUIRES: an item alone is not above
// plain_size_max(). Called by a whole warp.
__device__ inline void prepare_items(const store::Core& core, store::ThreadContext& thread,
                                     bool wants, uint32_t key_size, uint32_t value_size,
                                     uint32_t expiry, uint32_t ttl_class) {
  uint32_t waiting = __ballot_sync(kAllLanes, wants);
  while (waiting != 0) {
    const uint32_t one_class =
        __shfl_sync(kAllLanes, ttl_class, static_cast<int>(__ffs(static_cast<int>(waiting)) - 1));
    const bool waits = (waiting >> lane_id() & 1) != 0 && ttl_class == one_class;
    const uint32_t bytes = footprint_of(waits, key_size, value_size);
    const uint32_t end = warp_sum_to(bytes);
    const bool served = waits && end <= core.plain_size_max();
    const uint32_t lanes = __ballot_sync(kAllLanes, served);
    if (lanes == 0) return;
    const uint32_t total = __reduce_max_sync(kAllLanes, served ? end : 0);
    uint64_t run = 0;
    if (lane_id() == 0) {
      run = reinterpret_cast<uint64_t>(store::take_run(core, thread, total, one_class));
    }
    run = __shfl_sync(kAllLanes, run, 0);
    if (run == 0) return;
    if (served) {
      uint8_t* const place = reinterpret_cast<uint8_t*>(run) + end - bytes;
      thread.prepared = store::detail::init_item(place, static_cast<uint8_t>(key_size), value_size,
                                                 expiry, store::Layout::kPlain);
      core.segment(core.segment_of(thread.prepared)).note_expiry(expiry);
    }
    __syncwarp();
    if (lane_id() == 0) spin_unlock(&core.lanes[thread.lane].lock);
    __syncwarp();
    waiting &= ~lanes;
  }
}

// Gives back what the writer has not used. Called by one lane.
__device__ inline void abandon_prepared(const store::StoreRef& store,
                                        store::ThreadContext& thread) {
  if (thread.prepared == nullptr) return;
  store::Allocation unused = {
      thread.prepared, static_cast<uint32_t>(store::item_footprint(*thread.prepared)), false};
  store.abandon(thread, unused);
  thread.prepared = nullptr;
}

}  // namespace warpcache::engine::cuda
