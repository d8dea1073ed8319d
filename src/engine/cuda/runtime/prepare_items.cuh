// SPDX-License-Identifier: Apache-2.0
//
// Allocates items for all writers of a warp, before they write. Device code.
#pragma once

#include <cstdint>

#include "gpu/warp.cuh"
#include "store/store_ref.h"

namespace warpcache::engine::cuda {

// Bytes of the item of a lane that wants one; else 0.
__device__ inline uint32_t footprint_of(bool wants, uint32_t key_size, uint32_t value_size) {
  return wants ? static_cast<uint32_t>(store::item_footprint(key_size, uint64_t{value_size})) : 0;
}

// Allocates items for the lanes that want one, as many in one step as the open segment has space
// for: one lock instead of up to 32. The result is in ThreadContext::prepared; null: allocate in
// the usual way. `expiry_class`: of `expiry`. REQUIRES: no item is above plain_size_max(). Called
// by a whole warp.
__device__ inline void prepare_items(const store::Core& core, store::ThreadContext& thread,
                                     bool wants, uint32_t key_size, uint32_t value_size,
                                     uint32_t expiry, uint32_t expiry_class) {
  uint32_t unserved = __ballot_sync(gpu::kAllLanes, wants);
  while (unserved != 0) {
    const int first = __ffs(static_cast<int>(unserved)) - 1;
    const uint32_t one_class = __shfl_sync(gpu::kAllLanes, expiry_class, first);
    const bool waits = (unserved >> gpu::lane_id() & 1) != 0 && expiry_class == one_class;
    const uint32_t bytes = footprint_of(waits, key_size, value_size);
    const uint32_t end = gpu::warp_sum_to(bytes);
    const uint32_t least = __shfl_sync(gpu::kAllLanes, bytes, first);
    store::Run run;
    if (gpu::lane_id() == 0) run = store::begin_run(core, thread, least, one_class);
    const uint64_t data = __shfl_sync(gpu::kAllLanes, reinterpret_cast<uint64_t>(run.data), 0);
    if (data == 0) return;
    const uint32_t space = __shfl_sync(gpu::kAllLanes, run.space, 0);
    const bool served = waits && end <= space;
    if (served) {
      uint8_t* const place = reinterpret_cast<uint8_t*>(data) + end - bytes;
      thread.prepared = store::detail::init_item(place, static_cast<uint8_t>(key_size), value_size,
                                                 expiry, store::Layout::kPlain);
      core.segment(core.segment_of(thread.prepared)).note_expiry(expiry);
    }
    const uint32_t total = __reduce_max_sync(gpu::kAllLanes, served ? end : 0);
    __syncwarp();
    if (gpu::lane_id() == 0) store::end_run(core, thread, total, one_class);
    __syncwarp();
    unserved &= ~__ballot_sync(gpu::kAllLanes, served);
  }
}

// Gives back an item that the writer has not used. Called by one lane.
__device__ inline void abandon_prepared(const store::StoreRef& store,
                                        store::ThreadContext& thread) {
  if (thread.prepared == nullptr) return;
  store::Allocation unused = {
      thread.prepared, static_cast<uint32_t>(store::item_footprint(*thread.prepared)), false};
  store.abandon(thread, unused);
  thread.prepared = nullptr;
}

}  // namespace warpcache::engine::cuda
