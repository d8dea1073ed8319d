// SPDX-License-Identifier: Apache-2.0
//
// The kernels, as the host starts them. All are asynchronous on the given stream; what pointers
// point to must stay until they have ended. Errors are CUDA's, to be looked for with
// cudaGetLastError() and at the next synchronisation.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "engine/cuda/runtime/job.h"
#include "gpu/launch_shape.h"
#include "store/cuda/block_resources.h"

namespace warpcache::engine::cuda {

using store::BlockResources;

// Of a reader, in CudaStoreConfig.
uint64_t block_scratch_bytes();
// Once per process and device, before the first launch.
cudaError_t prepare_frame_kernels();
cudaError_t prepare_packet_kernels();
inline cudaError_t prepare_kernels(const FrameJob*) { return prepare_frame_kernels(); }
inline cudaError_t prepare_kernels(const PacketJob*) { return prepare_packet_kernels(); }

inline constexpr uint32_t kPacketWarpsMax = 16;  // of a block

// For a job of `shares`, on up to `blocks` blocks.
inline gpu::LaunchShape shape_for(const FrameJob*, uint32_t shares, uint32_t blocks) {
  return {std::clamp(shares, 1u, blocks), kSliceFrames};
}
// Packets are spread over blocks first: a small batch ends sooner so.
inline gpu::LaunchShape shape_for(const PacketJob*, uint32_t shares, uint32_t blocks) {
  blocks = std::clamp(shares, 1u, blocks);
  const uint32_t warps = std::clamp((shares + blocks - 1) / blocks, 1u, kPacketWarpsMax);
  return {blocks, warps * kChunkPackets};
}

// Of a kernel that stays. Several engines' kernels share the device's registers.
inline constexpr uint32_t kPersistentWarps = 4;
inline gpu::LaunchShape persistent_shape(const FrameJob*, uint32_t blocks) {
  return {blocks, kSliceFrames};
}
inline gpu::LaunchShape persistent_shape(const PacketJob*, uint32_t blocks) {
  return {blocks, kPersistentWarps * kChunkPackets};
}

// Blocks of the kernel that stays which the device takes at the same time, once its kernels are
// prepared; 0 after an error.
uint32_t persistent_blocks_at_once(const FrameJob*);
uint32_t persistent_blocks_at_once(const PacketJob*);

// Runs a job's shares.
void launch_job(const BlockResources& resources, const FrameJob& job, const gpu::LaunchShape& shape,
                cudaStream_t stream);
void launch_job(const BlockResources& resources, const PacketJob& job,
                const gpu::LaunchShape& shape, cudaStream_t stream);

// The same by a kernel that stays: its blocks wait for the doorbell, which brings the job. It ends
// when the doorbell says so. Jobs numbered up to `last_job` are over.
void launch_persistent(const BlockResources& resources, const Doorbell<FrameJob>* bell,
                       DeviceDoorbell<FrameJob>* device_bell, uint32_t last_job,
                       const gpu::LaunchShape& shape, cudaStream_t stream);
void launch_persistent(const BlockResources& resources, const Doorbell<PacketJob>* bell,
                       DeviceDoorbell<PacketJob>* device_bell, uint32_t last_job,
                       const gpu::LaunchShape& shape, cudaStream_t stream);

}  // namespace warpcache::engine::cuda
