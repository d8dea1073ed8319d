// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/messages/slice.cuh"
#include "engine/cuda/runtime/job_kernel.cuh"
#include "gpu/start_kernel.cuh"

namespace warpcache::engine::cuda {

namespace {

// Runs a group, slice by slice. Called by the whole block.
__device__ __noinline__ void run_group(const BlockResources& resources, const FrameJob& job,
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
                             uint8_t* shared, uint32_t blocks, bool) {
    Slice& slice = *reinterpret_cast<Slice*>(shared);
    for (uint32_t number = blockIdx.x; number < job.shares; number += blocks) {
      run_group(resources, job, job.groups[number], slice, tally);
    }
  }
  static __device__ void leave(const BlockResources&, const FrameJob&) {
  }  // every slice leaves its epoch by itself
  static __device__ void finish(const FrameJob&) {}
};

__global__ void __launch_bounds__(kSliceFrames)
    frame_kernel(const __grid_constant__ BlockResources resources,
                 const __grid_constant__ FrameJob job) {
  run_job<FrameWork>(resources, job);
}

__global__ void __launch_bounds__(kSliceFrames)
    persistent_frame_kernel(const __grid_constant__ BlockResources resources,
                            const Doorbell<FrameJob>* bell, DeviceDoorbell<FrameJob>* device_bell,
                            uint32_t last) {
  run_jobs<FrameWork>(resources, bell, device_bell, last);
}

}  // namespace

uint32_t persistent_blocks_at_once(const FrameJob*) {
  return gpu::blocks_at_once(persistent_frame_kernel,
                             persistent_shape(static_cast<FrameJob*>(nullptr), 1), sizeof(Slice));
}

uint64_t block_scratch_bytes() { return kScratchBytes; }

cudaError_t prepare_frame_kernels() {
  constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  const cudaError_t error = cudaFuncSetAttribute(frame_kernel, kAttribute, sizeof(Slice));
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(persistent_frame_kernel, kAttribute, sizeof(Slice));
}

void launch_job(const BlockResources& resources, const FrameJob& job, const gpu::LaunchShape& shape,
                cudaStream_t stream) {
  gpu::start_kernel(frame_kernel, shape, sizeof(Slice), stream, resources, job);
}

void launch_persistent(const BlockResources& resources, const Doorbell<FrameJob>* bell,
                       DeviceDoorbell<FrameJob>* device_bell, uint32_t last_job,
                       const gpu::LaunchShape& shape, cudaStream_t stream) {
  gpu::start_kernel(persistent_frame_kernel, shape, sizeof(Slice), stream, resources, bell,
                    device_bell, last_job);
}

}  // namespace warpcache::engine::cuda
