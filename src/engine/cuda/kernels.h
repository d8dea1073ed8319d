// SPDX-License-Identifier: Apache-2.0
//
// The kernels, as the host starts them. All are asynchronous on the given stream; what pointers
// point to must stay until they have ended. Errors are CUDA's, to be looked for with
// cudaGetLastError() and at the next synchronisation.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "engine/cuda/job.h"
#include "store/owner.h"

namespace warpcache::engine::cuda {

// Blocks that may run at once, and where their readers are.
struct BlockResources {
  store::Core core;
  store::ThreadCounters* counters;  // one a reader
  uint8_t* scratch;                 // block_scratch_bytes() a reader
};

uint64_t block_scratch_bytes();
// Once per process and device, before the first launch.
cudaError_t prepare_frame_kernels();
cudaError_t prepare_packet_kernels();
inline cudaError_t prepare_kernels(const FrameJob*) { return prepare_frame_kernels(); }
inline cudaError_t prepare_kernels(const PacketJob*) { return prepare_packet_kernels(); }

// Blocks and their threads.
struct LaunchShape {
  uint32_t blocks;
  uint32_t threads;
};

inline constexpr uint32_t kPacketWarpsMax = 16;  // of a block

// For a job of `shares`, on up to `blocks` blocks.
inline LaunchShape shape_for(const FrameJob*, uint32_t shares, uint32_t blocks) {
  return {std::clamp(shares, 1u, blocks), kSliceFrames};
}
// Packets are spread over blocks first: a small batch ends sooner so.
inline LaunchShape shape_for(const PacketJob*, uint32_t shares, uint32_t blocks) {
  blocks = std::clamp(shares, 1u, blocks);
  const uint32_t warps = std::clamp((shares + blocks - 1) / blocks, 1u, kPacketWarpsMax);
  return {blocks, warps * kChunkPackets};
}

// Of a kernel that stays. Several engines' kernels share the device's registers.
inline constexpr uint32_t kPersistentWarps = 4;
inline LaunchShape persistent_shape(const FrameJob*, uint32_t blocks) {
  return {blocks, kSliceFrames};
}
inline LaunchShape persistent_shape(const PacketJob*, uint32_t blocks) {
  return {blocks, kPersistentWarps * kChunkPackets};
}

// Blocks of the kernel that stays which the device takes at the same time, once its kernels are
// prepared; 0 after an error.
uint32_t persistent_blocks_at_once(const FrameJob*);
uint32_t persistent_blocks_at_once(const PacketJob*);

// Runs a job's shares.
void launch_job(const BlockResources& resources, const FrameJob& job, const LaunchShape& shape,
                cudaStream_t stream);
void launch_job(const BlockResources& resources, const PacketJob& job, const LaunchShape& shape,
                cudaStream_t stream);

// The same by a kernel that stays: its blocks wait for the doorbell, which brings the job. It ends
// when the doorbell says so. Jobs numbered up to `last_job` are over.
void launch_persistent(const BlockResources& resources, const Doorbell<FrameJob>* bell,
                       Turn<FrameJob>* turn, uint32_t last_job, const LaunchShape& shape,
                       cudaStream_t stream);
void launch_persistent(const BlockResources& resources, const Doorbell<PacketJob>* bell,
                       Turn<PacketJob>* turn, uint32_t last_job, const LaunchShape& shape,
                       cudaStream_t stream);

// --- The store's own work: a block of the device, whose first thread leads, and hands
// (store/gang.h).

enum class ServiceOp : uint32_t {
  kStart,     // builds the maintainer
  kMaintain,  // see store::Maintainer::maintain(). `result` 1: there is more to do at once
  kMakeRoom,  // argument: bytes. `result` is a Maintainer::Room
  kFlush,
  kClock,  // argument: the second
  kExpire,
  kSetTarget,  // argument: segments. `result` 0: see store::Maintainer::set_target()
  kReserve,    // argument: key size << 32 | value size. `result` is the id, `status` says more
  kAbandon,    // argument: the id
  kInspect,    // `key`, `key_size`. `result` 1: `item` is the header
};

// In pinned host memory.
struct ServiceCall {
  ServiceOp op;
  uint32_t key_size;
  uint64_t argument;
  uint64_t result;
  Status status;
  uint32_t free_segments;
  uint32_t low_water;
  uint64_t segment_limit;
  store::Clock clock;
  alignas(16) store::Item item;
  uint8_t key[256];
};

// Makes the driver take the memory of the device that kernels keep for what their threads have no
// registers for: hundreds of megabytes, and else taken at the first launch, when there may be too
// little. Of all kernels the store's want most.
void take_kernel_memory(cudaStream_t stream);

// `maintainer`: device memory of maintainer_bytes(). `hands`: as many at each call; `shift`:
// another number at each, never 0.
uint64_t maintainer_bytes(uint32_t hands);
void launch_service(const store::Core& core, store::ThreadCounters* counters, void* maintainer,
                    ServiceCall* call, uint32_t shift, uint32_t hands, cudaStream_t stream);

// Copies `size` bytes of pinned host memory into the value of a reservation, from `offset` on.
void launch_fill(const store::Core& core, uint32_t reservation, uint32_t offset,
                 const uint8_t* from, uint32_t size, cudaStream_t stream);

// Live items, header and key, of the pairs from `first_pair` on until the buffer is full, or some
// milliseconds are over.
struct WalkCall {
  uint32_t first_pair;
  uint32_t next_pair;   // out: where to go on, unless it is behind the last
  uint32_t pair_count;  // out
  uint32_t count;       // out: items in the buffer
};
inline constexpr uint32_t kWalkedBytes = sizeof(store::Item) + 256;  // a key has at most 250 bytes
inline constexpr uint32_t kWalkedMax = 2048;
void launch_walk(const store::Core& core, WalkCall* call, uint8_t* buffer, cudaStream_t stream);

}  // namespace warpcache::engine::cuda
