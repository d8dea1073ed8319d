// SPDX-License-Identifier: Apache-2.0
//
// Shared by both packet kernels: the one that is launched for a job (packet_kernels.cu) and the
// persistent one (persistent_packet_kernel.cu). They are two files because ptxas takes two minutes
// for each kernel, three quarters of it for the general path; as two files they compile at the same
// time.
//
// Device code.
#pragma once

#include "engine/cuda/packets/packet_chunk.cuh"
#include "engine/cuda/runtime/job_kernel.cuh"
#include "gpu/start_kernel.cuh"

namespace warpcache::engine::cuda {

struct PacketWork {
  using JobKind = PacketJob;
  static constexpr bool kStandsBy = true;

  static __device__ void run(const BlockResources& resources, const PacketJob& job, Tally& tally,
                             uint8_t* shared, uint32_t block, uint32_t blocks, bool entered) {
    store::EpochSlot* const reader = &resources.core.epochs[job.first_reader + blockIdx.x];
    WarpStage& stage = reinterpret_cast<WarpStage*>(shared)[gpu::warp_id()];
    PacketChunk packets(resources, job, stage, tally);
    // The last warp enters the block's epoch while the first frames of the others are loaded. All
    // warps wait for it in the same place, also those without a chunk.
    if (!entered && threadIdx.x == blockDim.x - 1) {
      store::enter_epoch(reader, &resources.core.shared->epoch);
    }
    const auto wait_for_epoch = [&entered] {
      if (!entered) __syncthreads();
      entered = true;
    };
    const uint32_t warps = blockDim.x / gpu::kWarpSize;
    uint32_t chunk = block + gpu::warp_id() * blocks;
    do {
      const uint32_t first = chunk * job.chunk;
      const uint32_t left = chunk < job.shares ? job.count - first : 0;
      packets.run(first, min(left, uint32_t{job.chunk}), wait_for_epoch);
      chunk += blocks * warps;
    } while (chunk < job.shares);
  }

  static __device__ void leave(const BlockResources& resources, const PacketJob& job) {
    store_relaxed(&resources.core.epochs[job.first_reader + blockIdx.x].epoch, store::kEpochIdle);
  }

  static __device__ void finish(const PacketJob& job) {
    const uint32_t words = static_cast<uint32_t>(load_relaxed(&job.words->reply_used));
    *job.reply_end = job.reply_begin + words * 16;
  }
};

inline constexpr uint32_t kPacketThreadsMax = kPacketWarpsMax * gpu::kWarpSize;

// Dynamic shared memory: the staging buffers of all warps.
inline uint32_t packet_shared_bytes(uint32_t threads) {
  return threads / gpu::kWarpSize * sizeof(WarpStage);
}

// Allows a packet kernel the most shared memory that it may use.
template <typename Kernel>
cudaError_t allow_packet_shared_bytes(Kernel* kernel) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(packet_shared_bytes(kPacketThreadsMax)));
}

// The part of prepare_packet_kernels() for persistent_packet_kernel.cu.
cudaError_t prepare_persistent_packet_kernel();

}  // namespace warpcache::engine::cuda
