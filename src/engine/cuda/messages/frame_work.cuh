// SPDX-License-Identifier: Apache-2.0
//
// The share of a block in a batch of framed requests. Device code.
#pragma once

#include "engine/cuda/messages/slice.cuh"
#include "engine/cuda/runtime/job_kernel.cuh"

namespace warpcache::engine::cuda {

// Runs a group, slice by slice. Called by the whole block.
__device__ __noinline__ inline void run_group(const BlockResources& resources, const FrameJob& job,
                                              const Group& group, Slice& slice, Tally& tally) {
  if (threadIdx.x == 0) {
    slice.ended = false;
    slice.entry_bytes = 0;
  }
  __syncthreads();
  for (uint32_t at = 0; at < group.frame_count; at += kSliceFrames) {
    const uint32_t left = group.frame_count - at;
    const uint32_t count = left < kSliceFrames ? left : kSliceFrames;
    if (!slice.ended) {
      SliceRunner runner(resources, job, slice, tally.counters);
      runner.run(group.first_frame + at, count);
    } else {
      for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
        job.replies[group.first_frame + at + i] = {0, 0, FrameState::kNotReached, 0};
      }
    }
    __syncthreads();
  }
}

struct FrameWork {
  using JobKind = FrameJob;
  static constexpr bool kStandsBy = false;  // every slice enters an epoch by itself

  static __device__ void run(const BlockResources& resources, const FrameJob& job, Tally& tally,
                             uint8_t* shared, uint32_t block, uint32_t blocks, bool) {
    Slice& slice = *reinterpret_cast<Slice*>(shared);
    for (uint32_t number = block; number < job.shares; number += blocks) {
      run_group(resources, job, job.groups[number], slice, tally);
    }
  }
  static __device__ void leave(const BlockResources&, const FrameJob&) {
  }  // every slice leaves its epoch by itself
  static __device__ void finish(const FrameJob&) {}
};

}  // namespace warpcache::engine::cuda
