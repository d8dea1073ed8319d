// SPDX-License-Identifier: Apache-2.0
//
// The wait-release barrier: blocks wait until someone releases them. No multiprocessor of today can
// sleep until a word changes, so a block that waits looks at the barrier's word in device memory,
// with pauses that grow; it leaves the work queue alone meanwhile. Device code.
#pragma once

#include "edge/device/words.cuh"

namespace warpcache::edge {

// What a block knows of a barrier. Level-sensitive: a release while the block works lets its next
// wait pass.
struct BarrierSeen {
  uint32_t generation = 0;
  uint64_t polls = 0;
};

// One look. True: the block goes on. Called by one thread.
__device__ inline bool try_pass(Barrier& barrier, BarrierSeen& seen) {
  ++seen.polls;
  const uint32_t generation = load_acquire_device(&barrier.generation);
  if (generation != seen.generation) {
    seen.generation = generation;
    return true;
  }
  const uint32_t permits = load_device(&barrier.permits);
  if (permits == 0 || atomicCAS(&barrier.permits, permits, permits - 1) != permits) return false;
  __threadfence();
  return true;
}

// Waits. False: not released within `looks`. Called by one thread; the others of its block wait at
// __syncthreads().
__device__ inline bool wait_threads(Barrier& barrier, BarrierSeen& seen, uint32_t looks) {
  for (uint32_t round = 0; round < looks; ++round) {
    if (try_pass(barrier, seen)) return true;
    back_off(round);
  }
  return false;
}

// All blocks that wait go on. What was written before is seen by them.
__device__ inline void release_threads(Barrier& barrier) {
  __threadfence();
  atomicAdd(&barrier.generation, 1u);
}

// Targeted: `blocks` of those that wait, or come next, go on.
__device__ inline void release_threads(Barrier& barrier, uint32_t blocks) {
  __threadfence();
  atomicAdd(&barrier.permits, blocks);
}

}  // namespace warpcache::edge
