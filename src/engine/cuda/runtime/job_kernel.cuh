// SPDX-License-Identifier: Apache-2.0
//
// What all kernels have in common: each block does its share of a job, in a kernel launched for the
// job or in a persistent kernel. A Work says what a share is:
//
//   struct Work {
//     using JobKind = ...;  // derived from Job
//     // A block that waits for jobs stays in its epoch until one comes.
//     static constexpr bool kStandsBy = ...;
//     // Called by the whole block, number `block` of `blocks`; `shared` is the kernel's dynamic
//     // shared memory. `entered`: the block is in its epoch already.
//     static __device__ void run(const BlockResources&, const JobKind&, Tally&, uint8_t* shared,
//                                uint32_t block, uint32_t blocks, bool entered);
//     // Called by one thread of the block, when the block reads the store no more.
//     static __device__ void leave(const BlockResources&, const JobKind&);
//     // Called by one thread of the device, when all shares (at least one) are done.
//     static __device__ void finish(const JobKind&);
//   };
//
// Device code.
#pragma once

#include <cuda/atomic>

#include "engine/cuda/runtime/kernels.h"
#include "gpu/block.cuh"
#include "gpu/dynamic_shared.cuh"

namespace warpcache::engine::cuda {

// Counts of a block during its share. In shared memory.
struct Tally {
  request::Counters counters;
  uint32_t undone;
  uint32_t space_wanted;
  uint32_t space_missing;
};

template <typename T>
__device__ T load_relaxed_system(const T* word) {
  return ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(*const_cast<T*>(word))
      .load(::cuda::memory_order_relaxed);
}

template <typename T>
__device__ T load_acquire_system(const T* word) {
  return ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(*const_cast<T*>(word))
      .load(::cuda::memory_order_acquire);
}

template <typename T>
__device__ void store_relaxed_system(T* word, T value) {
  ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(*word).store(value,
                                                                  ::cuda::memory_order_relaxed);
}

template <typename T>
__device__ void store_release_system(T* word, T value) {
  ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(*word).store(value,
                                                                  ::cuda::memory_order_release);
}

// Orders all accesses before it and after it, of this thread (and, with a barrier, of its block),
// for every observer in the system: other blocks and the host.
__device__ inline void fence_system() {
  ::cuda::atomic_thread_fence(::cuda::memory_order_acq_rel, ::cuda::thread_scope_system);
}

// Orders a relaxed load before it and all accesses after it, of this thread (and, with a barrier,
// of its warp or block). Unlike fence_system() it waits for no earlier store.
__device__ inline void fence_acquire_system() {
#if defined(__NVCC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900  // not the simulated GPU
  asm volatile("fence.acquire.sys;" ::: "memory");
#else
  fence_system();
#endif
}

// Called by a whole block.
template <typename JobKind>
__device__ void load_job(JobKind& job, const JobKind* from) {
  for (uint32_t i = threadIdx.x; i < sizeof(JobKind) / sizeof(uint32_t); i += blockDim.x) {
    reinterpret_cast<uint32_t*>(&job)[i] = reinterpret_cast<const volatile uint32_t*>(from)[i];
  }
  __syncthreads();
}

// Adds the counts of one block to the sums. Called by the whole block.
__device__ inline void add_up(JobResult& totals, const Tally& tally) {
  for (uint32_t i = threadIdx.x; i < kCounterCount; i += blockDim.x) {
    const auto count = static_cast<uint32_t>(tally.counters.value[i]);
    if (count != 0) atomicAdd(&totals.counts[i], count);
  }
  if (threadIdx.x != 0 || tally.undone == 0) return;
  atomicAdd(&totals.undone, tally.undone);
  atomicMax(&totals.space_wanted, tally.space_wanted);
  atomicAdd(reinterpret_cast<unsigned long long*>(&totals.space_missing), tally.space_missing);
}

// Both report paths issue all loads before the first use, so that their latencies overlap.

// Writes the sums to the host and clears them for the next job. Called by one thread, when all
// blocks have added theirs.
template <typename Work>
__device__ void report_totals(const store::Shared& store, const typename Work::JobKind& job) {
  constexpr uint32_t kWords = sizeof(JobResult) / sizeof(uint4);
  auto* const totals = reinterpret_cast<uint4*>(&job.words->totals);
  auto* const report = reinterpret_cast<uint4*>(job.result);
  uint4 words[kWords];
#pragma unroll
  for (uint32_t i = 0; i < kWords; ++i) words[i] = __ldcg(totals + i);
  words[kWords - 1].z = load_relaxed(&store.free_count);
  words[kWords - 1].w = load_relaxed(&store.low_water);
  Work::finish(job);
#pragma unroll
  for (uint32_t i = 0; i < kWords; ++i) {
    report[i] = words[i];
    totals[i] = {0, 0, 0, 0};
  }
}
static_assert(offsetof(JobResult, free_segments) == sizeof(JobResult) - 8 &&
              offsetof(JobResult, low_water) == sizeof(JobResult) - 4);

// The same for a job of one block, without report_space(). Called by the whole block.
template <typename Work>
__device__ void report_own(const typename Work::JobKind& job, const Tally& tally) {
  JobResult& report = *job.result;
  for (uint32_t i = threadIdx.x; i < kCounterCount; i += blockDim.x) {
    report.counts[i] = static_cast<uint32_t>(tally.counters.value[i]);
  }
  if (threadIdx.x != 0) return;
  if (job.shares != 0) Work::finish(job);
  report.undone = tally.undone;
  report.space_wanted = tally.space_wanted;
  report.space_missing = tally.space_missing;
}

// The part of the report of a one-block job that is read from the store. It runs at the start of
// the job, beside the other threads, since these loads take long. Called by one thread.
__device__ inline void report_space(const store::Shared& store, JobResult& report) {
  const uint32_t free_segments = load_relaxed(&store.free_count);
  report.low_water = load_relaxed(&store.low_water);
  report.free_segments = free_segments;
}

// Publishes the end of the block's share: its epoch, its count, and after all blocks the number of
// the job. The fence before it orders all that the block has read and written; it waits for the
// bus, so a job of one block has only one. Called by one thread.
template <typename Work>
__device__ void end_share(const BlockResources& resources, const typename Work::JobKind& job,
                          uint32_t blocks) {
  fence_system();
  Work::leave(resources, job);
  if (blocks == 1) {
    store_relaxed(&job.words->reply_used, 0);
    store_relaxed_system(job.done, job.number);
    return;
  }
  if (atomicAdd(&job.words->blocks_done, 1u) + 1 != blocks) return;
  fence_system();
  report_totals<Work>(*resources.core.shared, job);
  store_relaxed(&job.words->blocks_done, 0);
  store_relaxed(&job.words->reply_used, 0);
  store_release_system(job.done, job.number);
}

// The share of block `block` of `blocks`. Its reader is job.first_reader + blockIdx.x. Called by
// the whole block.
template <typename Work>
__device__ void run_share(const BlockResources& resources, const typename Work::JobKind& job,
                          Tally& tally, uint8_t* shared, uint32_t block, uint32_t blocks,
                          bool entered) {
  for (uint32_t i = threadIdx.x; i < kCounterCount; i += blockDim.x) tally.counters.value[i] = 0;
  if (threadIdx.x == 0) tally.undone = tally.space_wanted = tally.space_missing = 0;
  __syncthreads();
  if (blocks == 1 && threadIdx.x == blockDim.x / 2)
    report_space(*resources.core.shared, *job.result);
  Work::run(resources, job, tally, shared, block, blocks, entered);
  __syncthreads();
  if (blocks == 1) {
    report_own<Work>(job, tally);
  } else {
    add_up(job.words->totals, tally);
  }
  __syncthreads();
  if (threadIdx.x == 0) end_share<Work>(resources, job, blocks);
}

template <typename Work>
__device__ void run_job(const BlockResources& resources, const typename Work::JobKind& job) {
  __shared__ Tally tally;
  run_share<Work>(resources, job, tally, gpu::dynamic_shared(), blockIdx.x, gridDim.x, false);
}

// --- Persistent kernel

// A pause between two polls: none while jobs come often, longer when none has come for a while.
__device__ inline void rest(uint32_t round) {
  if (round < 2000) return;
  __nanosleep(round < 20000 ? 500 : 5000);
}

// Waits for a job later than `last` and changes `job`, in shared memory, which is the latest one,
// to it. Returns a DeviceDoorbell::go without the blocks. Called by a whole warp.
template <typename JobKind>
__device__ uint64_t wait_for_host(const Doorbell<JobKind>* bell, uint32_t last, JobKind& job) {
  constexpr uint32_t kLine = Doorbell<JobKind>::kLineWords;
  static_assert(kLine <= gpu::kWarpSize);
  const uint32_t lane = gpu::lane_id();
  const auto load = [bell](uint32_t at) { return BellWord{load_relaxed_system(&bell->words[at])}; };
  BellWord word = {};
  BellWord call = {};
  for (uint32_t round = 0;; ++round) {
    if (lane < kLine) word = load(lane);
    call.bits = __shfl_sync(~0u, word.bits, 0);
    if (call.value() != last) break;
    rest(round);
  }
  if (call.position() == BellWord::kEnd) return uint64_t{call.value()} << 32 | kStopAll;
  for (uint32_t at = lane; at <= call.position(); at += gpu::kWarpSize) {
    if (at == 0) continue;
    if (at >= kLine) word = load(at);
    while (word.tag() != call.tag()) word = load(at);
    reinterpret_cast<uint32_t*>(&job)[word.position()] = word.value();
  }
  __syncwarp();
  // The host has written the job's data before its words. A short job ends sooner without waiting
  // for stores of the job before. Of long ones, which share the bus, more a second end with it.
  if (job.reads_host()) {
    if (job.shares <= 1) {
      fence_acquire_system();
    } else {
      fence_system();
    }
  }
  return uint64_t{call.value()} << 32;
}

__device__ inline uint64_t wait_for_leader(const uint64_t* go_word, uint32_t last) {
  uint64_t go = uint64_t{last} << 32;
  for (uint32_t round = 0; static_cast<uint32_t>(go >> 32) == last; ++round) {
    go = load_acquire_system(go_word);
    if (static_cast<uint32_t>(go >> 32) == last) rest(round);
  }
  return go;
}

// Starts the other blocks if they have a share. Returns the number of blocks that work on the job.
// Called by the whole first block.
template <typename JobKind>
__device__ uint32_t begin_job(const JobKind& job, DeviceDoorbell<JobKind>* device_bell,
                              uint32_t number) {
  const uint32_t blocks = job.shares < gridDim.x ? job.shares : gridDim.x;
  if (blocks <= 1) return 1;  // an empty job ends as well
  for (uint32_t i = threadIdx.x; i < sizeof(JobKind) / sizeof(uint32_t); i += blockDim.x) {
    reinterpret_cast<uint32_t*>(&device_bell->job)[i] = reinterpret_cast<const uint32_t*>(&job)[i];
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) store_release_system(&device_bell->go, uint64_t{number} << 32 | blocks);
  return blocks;
}

// The epoch of a waiting block gets old and holds back memory. After these clock cycles the block
// enters the current epoch; after this number of times it leaves.
inline constexpr int64_t kStandByCycles = 40000;
inline constexpr uint32_t kStandBysMax = 100;

// Keeps the block in an epoch while it waits for a job later than `last`: entering one takes a
// fence, and a single request would wait for it. Returns true if the block is still in its epoch
// when `called` announces the job; after some milliseconds it leaves. Called by one thread of a
// warp that does not poll.
__device__ inline bool stand_by(const store::Core& core, store::EpochSlot& slot, uint32_t* called,
                                uint32_t last) {
  for (uint32_t i = 0; i < kStandBysMax; ++i) {
    store::enter_epoch(&slot, &core.shared->epoch);
    const int64_t begin = clock64();
    do {
      if (atomicOr(called, 0u) != last) return true;
    } while (clock64() - begin < kStandByCycles);
  }
  store::leave_epoch(&slot);
  return false;
}

template <typename Work>
__device__ void run_jobs(const BlockResources& resources,
                         const Doorbell<typename Work::JobKind>* bell,
                         DeviceDoorbell<typename Work::JobKind>* device_bell, uint32_t last) {
  __shared__ typename Work::JobKind job;
  __shared__ Tally tally;
  __shared__ uint64_t signal;
  __shared__ uint32_t called;  // number of the first block's latest job
  __shared__ bool entered;
  const bool leads = blockIdx.x == 0;
  const bool stands_by =
      Work::kStandsBy && leads && threadIdx.x == blockDim.x - 1 && gpu::warp_id() != 0;
  store::EpochSlot* slot = nullptr;  // of this block, known from its first job on
  if (threadIdx.x == 0) {
    called = last;
    entered = false;
  }
  __syncthreads();
  while (true) {
    if (leads && gpu::warp_id() == 0) {
      const uint64_t go = wait_for_host(bell, last, job);
      if (gpu::lane_id() == 0) {
        signal = go;
        atomicExch(&called, static_cast<uint32_t>(go >> 32));
      }
    }
    if (!leads && threadIdx.x == 0) signal = wait_for_leader(&device_bell->go, last);
    if (stands_by && slot != nullptr) entered = stand_by(resources.core, *slot, &called, last);
    __syncthreads();
    last = static_cast<uint32_t>(signal >> 32);
    uint32_t blocks = static_cast<uint32_t>(signal);
    if (blocks == kStopAll) {
      if (leads && threadIdx.x == 0) store_release_system(&device_bell->go, signal);
      if (stands_by && entered) store::leave_epoch(slot);
      return;
    }
    if (leads) {
      blocks = begin_job(job, device_bell, last);
    } else if (blockIdx.x < blocks) {
      load_job(job, &device_bell->job);
    }
    if (blockIdx.x < blocks) {
      run_share<Work>(resources, job, tally, gpu::dynamic_shared(), blockIdx.x, blocks, entered);
      slot = &resources.core.epochs[job.first_reader + blockIdx.x];
    }
    __syncthreads();
  }
}

}  // namespace warpcache::engine::cuda
