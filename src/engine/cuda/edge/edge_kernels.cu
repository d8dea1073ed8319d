// SPDX-License-Identifier: Apache-2.0
//
// The request kernels as event kernels.
#include <algorithm>

#include "edge/device/program.cuh"
#include "engine/cuda/edge/edge_jobs.h"
#include "engine/cuda/messages/frame_work.cuh"
#include "engine/cuda/packets/packet_work.cuh"

namespace warpcache::engine::cuda {

namespace {

template <typename Work>
struct JobEvent {
  using JobKind = typename Work::JobKind;
  using Parameters = EdgeJob<JobKind>;

  static __device__ uint32_t run(const Parameters& parameters, const edge::EventBlock& block) {
    __shared__ JobKind job;
    __shared__ BlockResources resources;
    __shared__ Tally tally;
    copy(job, &parameters.job);
    copy(resources, parameters.resources);
    __syncthreads();
    // The block's reader is that of its number in the event, on whatever worker it runs.
    if (threadIdx.x == 0) job.first_reader += block.block - blockIdx.x;
    __syncthreads();
    run_share<Work>(resources, job, tally, block.shared, block.block, block.blocks, false);
    return 0;
  }

 private:
  template <typename T>
  static __device__ void copy(T& to, const T* from) {
    static_assert(sizeof(T) % sizeof(uint32_t) == 0);
    for (uint32_t i = threadIdx.x; i < sizeof(T) / sizeof(uint32_t); i += blockDim.x) {
      reinterpret_cast<uint32_t*>(&to)[i] = reinterpret_cast<const uint32_t*>(from)[i];
    }
  }
};

}  // namespace

const edge_program* program_of_engine() {
  return edge::WorkerProgram<JobEvent<FrameWork>, JobEvent<PacketWork>>::table();
}

uint32_t edge_shared_bytes() {
  return std::max<uint32_t>(sizeof(Slice), packet_shared_bytes(kSliceFrames));
}

}  // namespace warpcache::engine::cuda
