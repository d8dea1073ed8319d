// SPDX-License-Identifier: Apache-2.0
//
// Shared by the single-key and the general path of writes. Device code; every function is called by
// the whole warp unless it says otherwise.
#pragma once

#include <cstdint>

#include "engine/cuda/packets/packet_stage.cuh"
#include "engine/cuda/runtime/prepare_items.cuh"
#include "request/stages.h"

namespace warpcache::engine::cuda {

// A block is one reader and one writer; blocks have lanes of their own while there are enough.
__device__ inline store::ThreadContext thread_of_block(const BlockResources& resources,
                                                       const PacketJob& job) {
  const uint32_t reader = job.first_reader + blockIdx.x;
  store::ThreadContext thread;
  thread.slot = &resources.core.epochs[reader];
  thread.counters = &resources.counters[reader];
  thread.append_point = reader % resources.core.shared->append_point_count;
  return thread;
}

// The key is at `from` of the input. The loads bypass the caches, since the host writes there again
// and again, and several are in progress at the same time, since they may cross the bus. Called by
// one lane.
__device__ inline bool is_key_at(const uint8_t* from, Bytes key) {
  constexpr uint32_t kAtOnce = 8;
  const uint32_t skip = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) % 4);
  const auto* words = reinterpret_cast<const volatile uint32_t*>(from - skip);
  const auto size = static_cast<uint32_t>(key.size);
  const uint32_t count = (skip + size + 3) / 4;
  for (uint32_t first = 0; first < count; first += kAtOnce) {
    uint32_t loaded[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      loaded[i] = first + i < count ? words[first + i] : 0;
    }
#pragma unroll
    for (uint32_t i = 0; i < 4 * kAtOnce; ++i) {
      const uint32_t at = 4 * first + i - skip;  // bytes before `from` get a number above `size`
      const auto byte = static_cast<uint8_t>(loaded[i / 4] >> (8 * (i % 4)));
      if (at < size && key.data[at] != byte) return false;
    }
  }
  return true;
}

// True: another SET of the key in this job is applied instead, and this one is answered as
// overwritten. If that one has to run again, it does so before the batch is answered. `offset`: of
// the key in the job's input. Called by one lane.
__device__ inline bool is_combined(const PacketJob& job, uint64_t hash, Bytes key,
                                   uint32_t offset) {
  const auto size = static_cast<uint32_t>(key.size);
  const uint64_t mine = combine_entry(job.combine_round, size, offset);
  uint64_t* const entry = job.combine_table + hash % kCombineEntries;
  uint64_t seen = load_relaxed(entry);
  if (combine_round(seen) != job.combine_round) {
    const uint64_t before = atomicCAS(reinterpret_cast<unsigned long long*>(entry), seen, mine);
    if (before == seen) return false;
    seen = before;
  }
  return seen != mine && combine_round(seen) == job.combine_round &&
         combine_key_size(seen) == size && is_key_at(job.input + combine_key_offset(seen), key);
}

// Reports the keys that the lanes may add to the index, and lets it grow. Returns how many.
__device__ inline int expect_items(const store::Core& core, store::ThreadContext& thread,
                                   bool adds) {
  const int expected = __popc(__ballot_sync(gpu::kAllLanes, adds));
  if (gpu::lane_id() == 0 && expected != 0) store::reserve_growth(core, thread, expected);
  __syncwarp();
  return expected;
}

// Corrects that number by what they have added.
__device__ inline void settle_items(const store::Core& core, store::ThreadContext& thread,
                                    int expected) {
  __syncwarp();
  const int added = __reduce_add_sync(gpu::kAllLanes, thread.new_items);
  thread.new_items = added - expected;
  if (gpu::lane_id() == 0 && thread.new_items != 0) store::settle_growth(core, thread);
  thread.new_items = 0;
}

// A CAS id for each lane.
__device__ inline void take_cas_ids(const store::Core& core, store::ThreadContext& thread) {
  uint64_t batch = 0;
  if (gpu::lane_id() == 0) batch = fetch_add(&core.shared->cas_batch, 1) + 1;
  batch = __shfl_sync(gpu::kAllLanes, batch, 0);
  thread.cas_next = batch << store::StoreRef::kCasIndexBits | gpu::lane_id();
  thread.cas_end = thread.cas_next + 1;
}

// Notes that a packet found no space in the store; it runs again after reclaim(). Called by one
// lane.
__device__ inline PacketResult defer_packet(Tally& tally, uint32_t bytes_wanted) {
  const uint32_t wanted = max(bytes_wanted, 1u);
  atomicMax(&tally.space_wanted, wanted);
  atomicAdd(&tally.space_missing, wanted);
  return PacketResult::not_done(PacketState::kDeferred);
}

}  // namespace warpcache::engine::cuda
