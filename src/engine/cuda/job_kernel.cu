// SPDX-License-Identifier: Apache-2.0
#include <cuda/atomic>

#include "engine/cuda/kernels.h"
#include "engine/cuda/slice.cuh"

namespace warpcache::engine::cuda {

namespace {

// A group, slice by slice. Called by the whole block.
__device__ __noinline__ void run_group(const store::Core& core, const Job& job, uint32_t number,
                                       Slice& slice, store::EpochSlot* reader,
                                       store::ThreadCounters* counters, uint32_t lane,
                                       uint8_t* scratch) {
  const Group group = job.groups[number];
  if (threadIdx.x == 0) {
    slice.ended = false;
    slice.entry_bytes = 0;
  }
  if (threadIdx.x < kCounterCount) slice.counters.value[threadIdx.x] = 0;
  __syncthreads();
  for (uint32_t at = 0; at < group.frame_count; at += kSliceFrames) {
    const uint32_t left = group.frame_count - at;
    const uint32_t count = left < kSliceFrames ? left : kSliceFrames;
    if (!slice.ended) {
      SliceRunner runner(core, job, slice, reader, counters, lane, scratch);
      runner.run(group.first_frame + at, count);
    } else {
      for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
        job.replies[group.first_frame + at + i] = {0, 0, FrameState::kNotReached, 0};
      }
    }
    __syncthreads();
  }
  GroupResult& result = job.results[number];
  if (threadIdx.x < kCounterCount) {
    result.counts[threadIdx.x] = static_cast<uint32_t>(slice.counters.value[threadIdx.x]);
  }
  if (threadIdx.x == 0) {
    result.free_segments = load_relaxed(&core.shared->free_count);
    result.low_water = load_relaxed(&core.shared->low_water);
  }
  __syncthreads();
}

// Called by a whole block.
__device__ void load_job(Job& job, const Job* from) {
  static_assert(sizeof(Job) % sizeof(uint32_t) == 0);
  for (uint32_t i = threadIdx.x; i < sizeof(Job) / sizeof(uint32_t); i += blockDim.x) {
    reinterpret_cast<uint32_t*>(&job)[i] = reinterpret_cast<const volatile uint32_t*>(from)[i];
  }
  __syncthreads();
}

// The share of one of `blocks` blocks. Called by the whole block. True for one thread of all: the
// job is complete, and the counts are as the next job wants to find them.
__device__ bool run_share(const BlockResources& resources, const Job& job, Slice& slice,
                          uint32_t blocks) {
  const uint32_t reader = job.first_reader + blockIdx.x;
  for (uint32_t group = blockIdx.x; group < job.group_count; group += blocks) {
    run_group(resources.core, job, group, slice, &resources.core.epochs[reader],
              &resources.counters[reader], reader % resources.core.shared->lane_count,
              resources.scratch + uint64_t{reader} * kScratchBytes);
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x != 0 || fetch_add(job.blocks_done, 1) + 1 != blocks) return false;
  store_relaxed(job.blocks_done, 0);
  store_relaxed(job.reply_used, 0);
  return true;
}

__global__ void __launch_bounds__(kSliceFrames)
    job_kernel(BlockResources resources, const Job* host_job) {
  extern __shared__ __align__(16) uint8_t shared[];
  Slice& slice = *reinterpret_cast<Slice*>(shared);
  __shared__ Job job;
  load_job(job, host_job);
  (void)run_share(resources, job, slice, gridDim.x);
}

// --- The kernel that stays

template <typename T>
__device__ T load_acquire_system(const T* word) {
  return ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(*const_cast<T*>(word))
      .load(::cuda::memory_order_acquire);
}

template <typename T>
__device__ void store_release_system(T* word, T value) {
  ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(*word).store(value,
                                                                  ::cuda::memory_order_release);
}

// One turn of waiting for work: at once while some has come lately, seldom when none comes.
__device__ void rest(uint32_t turn) {
  if (turn < 2000) return;
  __nanosleep(turn < 20000 ? 500 : 5000);
}

// Waits for a job later than `last`. Returns what Turn::go says of it, without the blocks.
__device__ uint64_t wait_for_host(const Doorbell* bell, uint32_t last) {
  uint32_t number = last;
  for (uint32_t turn = 0; number == last; ++turn) {
    number = load_acquire_system(&bell->job);
    if (number == last) rest(turn);
  }
  const bool stop = load_acquire_system(&bell->stop) != 0;
  return uint64_t{number} << 32 | (stop ? kStopAll : 0);
}

__device__ uint64_t wait_for_turn(const Turn* turn_word, uint32_t last) {
  uint64_t go = uint64_t{last} << 32;
  for (uint32_t turn = 0; static_cast<uint32_t>(go >> 32) == last; ++turn) {
    go = load_acquire_system(&turn_word->go);
    if (static_cast<uint32_t>(go >> 32) == last) rest(turn);
  }
  return go;
}

// Called by the whole first block: the job comes from the host, and others are woken if they have a
// share. Returns the blocks that work on it.
__device__ uint32_t begin_job(Job& job, const Job* host_job, Turn* turn, uint32_t number) {
  load_job(job, host_job);
  const uint32_t blocks = job.group_count < gridDim.x ? job.group_count : gridDim.x;
  if (blocks <= 1) return 1;  // a job of nothing has to end as well
  for (uint32_t i = threadIdx.x; i < sizeof(Job) / sizeof(uint32_t); i += blockDim.x) {
    reinterpret_cast<uint32_t*>(&turn->job)[i] = reinterpret_cast<const uint32_t*>(&job)[i];
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) store_release_system(&turn->go, uint64_t{number} << 32 | blocks);
  return blocks;
}

__global__ void __launch_bounds__(kSliceFrames)
    persistent_kernel(BlockResources resources, const Job* host_job, Doorbell* bell, Turn* turn,
                      uint32_t last) {
  extern __shared__ __align__(16) uint8_t shared[];
  Slice& slice = *reinterpret_cast<Slice*>(shared);
  __shared__ Job job;
  __shared__ uint64_t signal;
  const bool leads = blockIdx.x == 0;
  while (true) {
    if (threadIdx.x == 0) signal = leads ? wait_for_host(bell, last) : wait_for_turn(turn, last);
    __syncthreads();
    last = static_cast<uint32_t>(signal >> 32);
    uint32_t blocks = static_cast<uint32_t>(signal);
    if (blocks == kStopAll) {
      if (leads && threadIdx.x == 0) store_release_system(&turn->go, signal);
      return;
    }
    if (leads) {
      blocks = begin_job(job, host_job, turn, last);
    } else if (blockIdx.x < blocks) {
      load_job(job, &turn->job);
    }
    if (blockIdx.x < blocks && run_share(resources, job, slice, blocks)) {
      store_release_system(&bell->done, last);
    }
    __syncthreads();
  }
}

}  // namespace

uint64_t block_scratch_bytes() { return kScratchBytes; }

cudaError_t prepare_kernels() {
  constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  const cudaError_t error = cudaFuncSetAttribute(job_kernel, kAttribute, sizeof(Slice));
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(persistent_kernel, kAttribute, sizeof(Slice));
}

void launch_job(const BlockResources& resources, const Job* job, uint32_t blocks,
                cudaStream_t stream) {
  job_kernel<<<blocks, kSliceFrames, sizeof(Slice), stream>>>(resources, job);
}

void launch_persistent(const BlockResources& resources, const Job* job, Doorbell* bell, Turn* turn,
                       uint32_t last_job, uint32_t blocks, cudaStream_t stream) {
  persistent_kernel<<<blocks, kSliceFrames, sizeof(Slice), stream>>>(resources, job, bell, turn,
                                                                     last_job);
}

}  // namespace warpcache::engine::cuda
