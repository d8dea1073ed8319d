// SPDX-License-Identifier: Apache-2.0
//
// What both ways of working off packets share: the stage, and the arena's accounts. Device code.
#pragma once

#include <cstdint>

#include "engine/cuda/packets/quick_find.cuh"
#include "engine/cuda/runtime/job_kernel.cuh"
#include "gpu/warp.cuh"
#include "net/packet.h"
#include "protocol/framing/udp_frame.h"

namespace warpcache::engine::cuda {

// Of frames that a warp holds at a time. A larger one is the host's.
inline constexpr uint32_t kStageBytes = 3 * 1024;
inline constexpr uint32_t kStageWords = kStageBytes / 16;
static_assert(kStageBytes >= net::kReplyHeadersMax + protocol::kUdpDatagramMax);
static_assert(PacketResult::kSizeMax >= net::kReplyHeadersMax + protocol::kUdpDatagramMax);

// Longer values are copied by the whole warp.
inline constexpr uint32_t kLaneValueMax = 64;

// Of what packets carry.
__device__ inline protocol::FrameLimits packet_limits(const PacketJob& job) {
  protocol::FrameLimits limits = {};
  limits.item_size_max = job.item_size_max;
  limits.inline_body_max = UINT32_MAX;
  limits.cas_enabled = job.cas_enabled;
  return limits;
}

// Shared memory of one warp.
struct WarpStage {
  alignas(16) uint8_t input[kStageBytes];
  alignas(16) uint8_t reply[kStageBytes];
};

// Copies the lanes' values, of those that have one (`mine`), one after the other. Called by the
// whole warp.
__device__ inline void copy_values(bool mine, uint8_t* to, const uint8_t* from, uint32_t size) {
  uint32_t owners = __ballot_sync(gpu::kAllLanes, mine);
  for (; owners != 0; owners &= owners - 1) {
    const int owner = __ffs(static_cast<int>(owners)) - 1;
    gpu::warp_copy(gpu::pointer_of(to, owner), gpu::pointer_of(from, owner),
                   __shfl_sync(gpu::kAllLanes, size, owner));
  }
  __syncwarp();
}

// The arena of a job. Its word's upper half counts what has been reserved, in words of 16 bytes,
// the lower half what has been taken; never is more taken than reserved.
class ReplyArena {
 public:
  __device__ explicit ReplyArena(const PacketJob& job)
      : used_(gpu::in_global(reinterpret_cast<unsigned long long*>(&job.words->reply_used))),
        begin_(job.reply_begin / 16),
        capacity_((job.reply_size - job.reply_begin) / 16) {}

  // Called by one lane. False: there is not so much.
  __device__ bool reserve(uint32_t words) const {
    const uint64_t before = atomicAdd(used_, uint64_t{words} << 32);
    if ((before >> 32) + words <= capacity_) return true;
    give_back(words);
    return false;
  }
  // Called by one lane: what was reserved is not needed.
  __device__ void give_back(uint32_t words) const {
    atomicAdd(used_, ~(uint64_t{words} << 32) + 1);
  }
  // Called by one lane. Takes `words`, of which `reserved` have been reserved. Sets where they
  // begin. False: there is not so much; never if all was reserved.
  __device__ bool take(uint32_t words, uint32_t reserved, uint32_t* begin) const {
    return settle(ask(words, reserved), words, reserved, begin);
  }
  // The same in two steps, for who has something to do until the answer is there.
  __device__ uint64_t ask(uint32_t words, uint32_t reserved) const {
    return atomicAdd(used_, change(words, reserved));
  }
  __device__ bool settle(uint64_t answer, uint32_t words, uint32_t reserved,
                         uint32_t* begin) const {
    *begin = begin_ + static_cast<uint32_t>(answer);
    if (words == reserved || (answer >> 32) + (words - reserved) <= capacity_) return true;
    atomicAdd(used_, ~change(words, reserved) + 1);
    return false;
  }

 private:
  __device__ static uint64_t change(uint32_t words, uint32_t reserved) {
    return uint64_t{words - reserved} << 32 | words;
  }

  unsigned long long* used_;
  uint32_t begin_;
  uint32_t capacity_;
};

// The first `words` of the staged replies go to the arena, from word `base` on. Called by the whole
// warp.
__device__ inline void send_staged(const PacketJob& job, const WarpStage& stage, uint32_t words,
                                   uint32_t base) {
  const auto* source = reinterpret_cast<const uint4*>(stage.reply);
  auto* target = reinterpret_cast<uint4*>(job.reply_out) + base;
  for (uint32_t at = gpu::lane_id(); at < words; at += gpu::kWarpSize)
    __stcs(target + at, source[at]);
  __syncwarp();
}

}  // namespace warpcache::engine::cuda
