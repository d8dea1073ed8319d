// SPDX-License-Identifier: Apache-2.0
//
// The kernels, and how the host starts them. All launches are asynchronous on the given stream;
// memory that pointers lead to must stay until they have ended. Errors are CUDA's: look for them
// with cudaGetLastError() and at the next synchronisation.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "base/bits.h"
#include "engine/cuda/runtime/job.h"
#include "gpu/launch_shape.h"
#include "store/cuda/block_resources.h"

namespace warpcache::engine::cuda {

using store::BlockResources;

// Of a reader: see CudaStoreConfig.
uint64_t block_scratch_bytes();
// Once for each process and device, before the first launch.
cudaError_t prepare_frame_kernels();
cudaError_t prepare_packet_kernels();
inline cudaError_t prepare_kernels(const FrameJob*) { return prepare_frame_kernels(); }
inline cudaError_t prepare_kernels(const PacketJob*) { return prepare_packet_kernels(); }

inline constexpr uint32_t kPacketWarpsMax = 16;  // of a block

// The shape for a job of `shares`, with up to `blocks` blocks.
inline gpu::LaunchShape shape_for(const FrameJob*, uint32_t shares, uint32_t blocks) {
  return {std::clamp(shares, 1u, blocks), kSliceFrames};
}
// Packets are spread over blocks first, so that a small batch ends sooner.
inline gpu::LaunchShape shape_for(const PacketJob*, uint32_t shares, uint32_t blocks) {
  blocks = std::clamp(shares, 1u, blocks);
  const uint32_t warps = std::clamp(divided_up(shares, blocks), 1u, kPacketWarpsMax);
  return {blocks, warps * kChunkPackets};
}

// Of a block of a persistent kernel. The kernels of several engines share the device's registers.
inline constexpr uint32_t kPersistentWarps = 4;
inline gpu::LaunchShape persistent_shape(const FrameJob*, uint32_t blocks) {
  return {blocks, kSliceFrames};
}
inline gpu::LaunchShape persistent_shape(const PacketJob*, uint32_t blocks) {
  return {blocks, kPersistentWarps * kChunkPackets};
}

// Blocks of a persistent kernel that fit on the device at the same time, once its kernels are
// prepared; 0 after an error.
uint32_t persistent_blocks_at_once(const FrameJob*);
uint32_t persistent_blocks_at_once(const PacketJob*);

// Runs the shares of a job.
void launch_job(const BlockResources& resources, const FrameJob& job, const gpu::LaunchShape& shape,
                cudaStream_t stream);
void launch_job(const BlockResources& resources, const PacketJob& job,
                const gpu::LaunchShape& shape, cudaStream_t stream);

// Starts the persistent kernel: its blocks wait at the doorbell for jobs, and end when it says so.
// Jobs up to number `last_job` are done already.
void launch_persistent(const BlockResources& resources, const Doorbell<FrameJob>* bell,
                       DeviceDoorbell<FrameJob>* device_bell, uint32_t last_job,
                       const gpu::LaunchShape& shape, cudaStream_t stream);
void launch_persistent(const BlockResources& resources, const Doorbell<PacketJob>* bell,
                       DeviceDoorbell<PacketJob>* device_bell, uint32_t last_job,
                       const gpu::LaunchShape& shape, cudaStream_t stream);

}  // namespace warpcache::engine::cuda
