// SPDX-License-Identifier: Apache-2.0
//
// The kernels' frame: a block takes its share of a job, alone or within a kernel that stays. What a
// share is, a Work says:
//
//   struct Work {
//     using JobKind = ...;  // derived from Job
//     // Called by the whole block; `shared` is the kernel's dynamic shared memory.
//     static __device__ void run(const BlockResources&, const JobKind&, Tally&, uint8_t* shared,
//                                uint32_t blocks);
//     // Called by one thread of the block, when what it has looked at is no longer needed.
//     static __device__ void leave(const BlockResources&, const JobKind&);
//     // Called by one thread of all, when all shares (one at least) are done.
//     static __device__ void finish(const JobKind&);
//   };
//
// Device code.
#pragma once

#include <cuda/atomic>

#include "engine/cuda/kernels.h"

namespace warpcache::engine::cuda {

// What a block counts during its share. In shared memory.
struct Tally {
  request::Counters counters;
  uint32_t undone;
  uint32_t room_wanted;
  uint32_t room_missing;
};

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

// Called by a whole block.
template <typename JobKind>
__device__ void load_job(JobKind& job, const JobKind* from) {
  static_assert(sizeof(JobKind) % sizeof(uint32_t) == 0);
  for (uint32_t i = threadIdx.x; i < sizeof(JobKind) / sizeof(uint32_t); i += blockDim.x) {
    reinterpret_cast<uint32_t*>(&job)[i] = reinterpret_cast<const volatile uint32_t*>(from)[i];
  }
  __syncthreads();
}

// All that the block has read and written comes before this: its epoch, its count, and after all
// blocks' counts the job's number. A fence waits for the bus; a job of one block has one. Called by
// one thread.
template <typename Work>
__device__ void end_share(const BlockResources& resources, const typename Work::JobKind& job,
                          uint32_t blocks) {
  const bool alone = blocks == 1;
  if (alone && job.shares != 0) Work::finish(job);
  __threadfence_system();
  Work::leave(resources, job);
  if (!alone) {
    if (atomicAdd(job.blocks_done, 1u) + 1 != blocks) return;
    __threadfence_system();
    Work::finish(job);
  }
  store_relaxed(job.blocks_done, 0);
  store_relaxed(job.reply_used, 0);
  store_release_system(job.done, job.number);
}

// The share of one of `blocks` blocks. Called by the whole block.
template <typename Work>
__device__ void run_share(const BlockResources& resources, const typename Work::JobKind& job,
                          Tally& tally, uint8_t* shared, uint32_t blocks) {
  for (uint32_t i = threadIdx.x; i < kCounterCount; i += blockDim.x) tally.counters.value[i] = 0;
  if (threadIdx.x == 0) tally.undone = tally.room_wanted = tally.room_missing = 0;
  __syncthreads();
  Work::run(resources, job, tally, shared, blocks);
  __syncthreads();
  BlockResult& result = job.results[blockIdx.x];
  for (uint32_t i = threadIdx.x; i < kCounterCount; i += blockDim.x) {
    result.counts[i] = static_cast<uint32_t>(tally.counters.value[i]);
  }
  if (threadIdx.x == 0) {
    result.undone = tally.undone;
    result.room_wanted = tally.room_wanted;
    result.room_missing = tally.room_missing;
    result.free_segments = load_relaxed(&resources.core.shared->free_count);
    result.low_water = load_relaxed(&resources.core.shared->low_water);
  }
  __syncthreads();
  if (threadIdx.x == 0) end_share<Work>(resources, job, blocks);
}

template <typename Work>
__device__ void run_job(const BlockResources& resources, const typename Work::JobKind& job) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ Tally tally;
  run_share<Work>(resources, job, tally, shared, gridDim.x);
}

// --- The kernel that stays

// One turn of waiting for work: at once while some has come lately, seldom when none comes.
__device__ inline void rest(uint32_t turn) {
  if (turn < 2000) return;
  __nanosleep(turn < 20000 ? 500 : 5000);
}

// Waits for a job later than `last`. Returns what Turn::go says of it, without the blocks.
__device__ inline uint64_t wait_for_host(const Doorbell* bell, uint32_t last) {
  uint32_t number = last;
  for (uint32_t turn = 0; number == last; ++turn) {
    number = load_acquire_system(&bell->job);
    if (number == last) rest(turn);
  }
  const bool stop = load_acquire_system(&bell->stop) != 0;
  return uint64_t{number} << 32 | (stop ? kStopAll : 0);
}

__device__ inline uint64_t wait_for_turn(const uint64_t* turn_word, uint32_t last) {
  uint64_t go = uint64_t{last} << 32;
  for (uint32_t turn = 0; static_cast<uint32_t>(go >> 32) == last; ++turn) {
    go = load_acquire_system(turn_word);
    if (static_cast<uint32_t>(go >> 32) == last) rest(turn);
  }
  return go;
}

// Called by the whole first block: the job comes from the host, and others are woken if they have a
// share. Returns the blocks that work on it.
template <typename JobKind>
__device__ uint32_t begin_job(JobKind& job, const JobKind* host_job, Turn<JobKind>* turn,
                              uint32_t number) {
  load_job(job, host_job);
  const uint32_t blocks = job.shares < gridDim.x ? job.shares : gridDim.x;
  if (blocks <= 1) return 1;  // a job of nothing has to end as well
  for (uint32_t i = threadIdx.x; i < sizeof(JobKind) / sizeof(uint32_t); i += blockDim.x) {
    reinterpret_cast<uint32_t*>(&turn->job)[i] = reinterpret_cast<const uint32_t*>(&job)[i];
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) store_release_system(&turn->go, uint64_t{number} << 32 | blocks);
  return blocks;
}

template <typename Work>
__device__ void run_jobs(const BlockResources& resources, const typename Work::JobKind* host_job,
                         Doorbell* bell, Turn<typename Work::JobKind>* turn, uint32_t last) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ typename Work::JobKind job;
  __shared__ Tally tally;
  __shared__ uint64_t signal;
  const bool leads = blockIdx.x == 0;
  while (true) {
    if (threadIdx.x == 0) {
      signal = leads ? wait_for_host(bell, last) : wait_for_turn(&turn->go, last);
    }
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
    if (blockIdx.x < blocks) run_share<Work>(resources, job, tally, shared, blocks);
    __syncthreads();
  }
}

}  // namespace warpcache::engine::cuda
