// SPDX-License-Identifier: Apache-2.0
//
// Makes an edge_program of event kernels. An event kernel is a struct:
//
//   struct Sum {
//     struct Parameters { ... };   // trivially copyable, at most EDGE_PARAMETER_BYTES_MAX bytes
//     // Called by all threads of a block; 0, or an own code: the largest one of its threads is
//     // the event's.
//     static __device__ uint32_t run(const Parameters&, const EventBlock&);
//   };
//
// Its number is its place in the list of the program. Parameters begin at a multiple of 16 bytes.
// Device code.
#pragma once

#include "edge/device/ring_dispatch.cuh"
#include "edge/device/scheduler.cuh"
#include "edge/device/worker.cuh"
#include "edge/program.h"
#include "gpu/start_kernel.cuh"

namespace warpcache::edge {

// The scheduler and its workers. Block 0 is the scheduler.
template <typename... Events>
__global__ void __launch_bounds__(kThreadsMax) edge_workers(const __grid_constant__ View view) {
  if (blockIdx.x != 0) return run_worker<Events...>(view, blockIdx.x - 1);
  __shared__ SchedulerShared shared;
  __shared__ RingShared rings;
  constexpr uint64_t kPatienceNs = 2'000'000'000;
  RingDispatch dispatch(view, rings);
  if (threadIdx.x == 0) dispatch.reset();
  reset_scheduler(shared);
  Scheduler<RingDispatch> scheduler(view, shared, dispatch);
  scheduler.run(gpu::global_time_ns(), [] { return false; });
  __syncthreads();
  if (threadIdx.x != 0) return;
  const bool ended = dispatch.finish(kPatienceNs);
  fence_all();
  store_release_system(&view.header().state,
                       static_cast<uint32_t>(ended ? RegionState::kStopped : RegionState::kFailed));
}

// An event that a graph launches.
template <typename Event>
__global__ void __launch_bounds__(kThreadsMax)
    edge_event(const __grid_constant__ View view, uint32_t event, uint32_t entry) {
  __shared__ __align__(16) uint32_t parameters[kParameterWordsMax];
  __shared__ uint32_t code;
  const Context& context = view.contexts[event * view.contexts_each + entry];
  const Facts& facts = view.state->queues[event].facts;
  for (uint32_t i = threadIdx.x; i < facts.words; i += blockDim.x) {
    parameters[i] = __ldcg(&context.parameters[i]);
  }
  if (threadIdx.x == 0) code = 0;
  const uint32_t blocks = __ldcg(&context.blocks);
  const uint32_t number = __ldcg(&context.number);
  if ((facts.task_flags & kTaskParametersOnly) == 0) fence_all();
  __syncthreads();
  uint32_t largest = 0;
  uint32_t ran = 0;
  for (uint32_t i = blockIdx.x; i < blocks; i += gridDim.x) {
    const EventBlock block = {i, blocks, event, number, parameters, gpu::dynamic_shared(), &view};
    const uint32_t own =
        Event::run(*reinterpret_cast<const typename Event::Parameters*>(parameters), block);
    if (own > largest) largest = own;
    ++ran;
    if (gridDim.x < blocks) __syncthreads();
  }
  if (largest != 0) atomicMax(&code, largest);
  __syncthreads();
  if (threadIdx.x != 0) return;
  const Ended ended = {event, number, &facts.completions[(number - 1) & (facts.depth - 1)],
                       facts.task_flags};
  end_task(view, ended, ran, gridDim.x, code);
}

inline constexpr auto kCarveout = cudaFuncAttributePreferredSharedMemoryCarveout;
inline constexpr auto kSharedBytesMax = cudaFuncAttributeMaxDynamicSharedMemorySize;

// For persistent workers alone: the kernels are compiled once, not a second time for graphs.
template <typename... Events>
struct WorkerProgram {
  static cudaError_t prepare(uint32_t shared_bytes) {
    const cudaError_t error = cudaFuncSetAttribute(edge_workers<Events...>, kSharedBytesMax,
                                                   static_cast<int>(shared_bytes));
    if (error != cudaSuccess) return error;
    // A multiprocessor keeps its division of L1 and shared memory while a block is on it: workers
    // must not keep kernels away that need more shared memory than they do.
    return cudaFuncSetAttribute(edge_workers<Events...>, kCarveout, cudaSharedmemCarveoutMaxShared);
  }
  static uint32_t workers_at_once(uint32_t threads, uint32_t shared_bytes) {
    return gpu::blocks_at_once(edge_workers<Events...>, {1, threads}, shared_bytes);
  }
  static void start_workers(const View& view, const gpu::LaunchShape& shape, uint32_t shared_bytes,
                            cudaStream_t stream) {
    gpu::start_kernel(edge_workers<Events...>, shape, shared_bytes, stream, view);
  }
  static bool start_event(uint32_t, const View&, uint32_t, uint32_t, const gpu::LaunchShape&,
                          uint32_t, cudaStream_t) {
    return false;
  }
  static const edge_program* table() {
    static_assert(sizeof...(Events) <= 256);
    static constexpr uint32_t kBytes[] = {uint32_t{sizeof(typename Events::Parameters)}...};
    static constexpr edge_program kTable = {sizeof...(Events), kBytes,        prepare,
                                            workers_at_once,   start_workers, start_event};
    return &kTable;
  }
};

// For workers and for graphs.
template <typename... Events>
struct Program : WorkerProgram<Events...> {
  using Workers = WorkerProgram<Events...>;

  static cudaError_t prepare(uint32_t shared_bytes) {
    cudaError_t error = Workers::prepare(shared_bytes);
    const auto allow = [&error, shared_bytes](auto* kernel) {
      if (error != cudaSuccess) return;
      error = cudaFuncSetAttribute(kernel, kSharedBytesMax, static_cast<int>(shared_bytes));
    };
    (allow(edge_event<Events>), ...);
    return error;
  }
  static bool start_event(uint32_t function, const View& view, uint32_t event, uint32_t entry,
                          const gpu::LaunchShape& shape, uint32_t shared_bytes,
                          cudaStream_t stream) {
    using Kernel = void (*)(View, uint32_t, uint32_t);
    static constexpr Kernel kKernels[] = {edge_event<Events>...};
    if (function >= sizeof...(Events)) return false;
    gpu::start_kernel(kKernels[function], shape, shared_bytes, stream, view, event, entry);
    return true;
  }
  static const edge_program* table() {
    static const edge_program kTable = {sizeof...(Events),
                                        Workers::table()->parameter_bytes,
                                        prepare,
                                        Workers::workers_at_once,
                                        Workers::start_workers,
                                        start_event};
    return &kTable;
  }
};

}  // namespace warpcache::edge
