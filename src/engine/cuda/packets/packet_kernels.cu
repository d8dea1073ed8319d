// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/packets/packet_chunk.cuh"
#include "engine/cuda/runtime/job_kernel.cuh"
#include "gpu/start_kernel.cuh"

namespace warpcache::engine::cuda {

namespace {

struct PacketWork {
  using JobKind = PacketJob;
  static constexpr bool kStandsBy = true;

  static __device__ void run(const BlockResources& resources, const PacketJob& job, Tally& tally,
                             uint8_t* shared, uint32_t blocks, bool entered) {
    store::EpochSlot* const reader = &resources.core.epochs[job.first_reader + blockIdx.x];
    WarpStage& stage = reinterpret_cast<WarpStage*>(shared)[gpu::warp_id()];
    PacketChunk packets(resources, job, stage, tally);
    // The last warp enters the block's epoch while the others' first frames come in. All warps wait
    // for it in the same place, those without a chunk as well.
    if (!entered && threadIdx.x == blockDim.x - 1) {
      store::enter_epoch(reader, &resources.core.shared->epoch);
    }
    const auto wait_for_epoch = [&entered] {
      if (!entered) __syncthreads();
      entered = true;
    };
    const uint32_t warps = blockDim.x / gpu::kWarpSize;
    uint32_t chunk = blockIdx.x + gpu::warp_id() * blocks;
    do {
      const uint32_t first = chunk * kChunkPackets;
      const uint32_t left = chunk < job.shares ? job.count - first : 0;
      packets.run(first, left < kChunkPackets ? left : kChunkPackets, wait_for_epoch);
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

constexpr uint32_t kThreadsMax = kPacketWarpsMax * gpu::kWarpSize;

__global__ void __launch_bounds__(kThreadsMax, 2)
    packet_kernel(const __grid_constant__ BlockResources resources,
                  const __grid_constant__ PacketJob job) {
  run_job<PacketWork>(resources, job);
}

__global__ void __launch_bounds__(kThreadsMax, 2)
    persistent_packet_kernel(const __grid_constant__ BlockResources resources,
                             const Doorbell<PacketJob>* bell, Turn<PacketJob>* turn,
                             uint32_t last) {
  run_jobs<PacketWork>(resources, bell, turn, last);
}

uint32_t shared_bytes(uint32_t threads) { return threads / gpu::kWarpSize * sizeof(WarpStage); }

}  // namespace

uint32_t persistent_blocks_at_once(const PacketJob*) {
  const gpu::LaunchShape shape = persistent_shape(static_cast<PacketJob*>(nullptr), 1);
  return gpu::blocks_at_once(persistent_packet_kernel, shape, shared_bytes(shape.threads));
}

cudaError_t prepare_packet_kernels() {
  constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  const auto most = static_cast<int>(shared_bytes(kThreadsMax));
  const cudaError_t error = cudaFuncSetAttribute(packet_kernel, kAttribute, most);
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(persistent_packet_kernel, kAttribute, most);
}

void launch_job(const BlockResources& resources, const PacketJob& job,
                const gpu::LaunchShape& shape, cudaStream_t stream) {
  gpu::start_kernel(packet_kernel, shape, shared_bytes(shape.threads), stream, resources, job);
}

void launch_persistent(const BlockResources& resources, const Doorbell<PacketJob>* bell,
                       Turn<PacketJob>* turn, uint32_t last_job, const gpu::LaunchShape& shape,
                       cudaStream_t stream) {
  gpu::start_kernel(persistent_packet_kernel, shape, shared_bytes(shape.threads), stream, resources,
                    bell, turn, last_job);
}

}  // namespace warpcache::engine::cuda
