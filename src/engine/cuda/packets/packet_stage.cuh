// SPDX-License-Identifier: Apache-2.0
//
// Shared by the single-key and the general path: the warp's staging buffer in shared memory, and
// allocation in the reply arena. Device code.
#pragma once

#include <cstdint>

#include "engine/cuda/packets/past_l1.cuh"
#include "engine/cuda/runtime/job_kernel.cuh"
#include "gpu/warp.cuh"
#include "net/packet.h"
#include "net/packet_burst.h"
#include "protocol/framing/udp_frame.h"

namespace warpcache::engine::cuda {

// Of the frames, and again of replies.
inline constexpr uint32_t kStageWords = kStageBytes / 16;
static_assert(kStageBytes >= net::kReplyHeadersMax + protocol::kUdpDatagramMax);
static_assert(PacketResult::kSizeMax >= net::kReplyHeadersMax + protocol::kUdpDatagramMax);

// Longer values are copied by the whole warp. Bytes.
inline constexpr uint32_t kLaneValueMax = 64;

// Limits for requests in packets.
__device__ inline protocol::FrameLimits packet_limits(const PacketJob& job) {
  protocol::FrameLimits limits = {};
  limits.item_size_max = job.item_size_max;
  limits.inline_body_max = UINT32_MAX;
  limits.cas_enabled = job.cas_enabled;
  limits.protocol = job.protocol;
  return limits;
}

// The single-key fast path reads text requests.
__device__ inline bool may_be_single_key(const PacketJob& job, const uint8_t* frame) {
  return reinterpret_cast<uintptr_t>(frame) % 4 == 0 && job.protocol != protocol::kProtocolBinary;
}

// Shared memory of one warp.
struct WarpStage {
  alignas(16) uint8_t input[kStageBytes];
  alignas(16) uint8_t reply[kStageBytes];
};

// Copies the values of all lanes that have one (`mine`), one after the other. Called by the whole
// warp.
__device__ inline void copy_values(bool mine, uint8_t* to, const uint8_t* from, uint32_t size) {
  uint32_t owners = __ballot_sync(gpu::kAllLanes, mine);
  for (; owners != 0; owners &= owners - 1) {
    const int owner = __ffs(static_cast<int>(owners)) - 1;
    gpu::warp_copy(gpu::pointer_of(to, owner), gpu::pointer_of(from, owner),
                   __shfl_sync(gpu::kAllLanes, size, owner));
  }
  __syncwarp();
}

// Allocation in the arena of a job. The upper half of the word counts what is reserved, in words of
// 16 bytes; the lower half counts what is taken, which never exceeds what is reserved.
class ReplyArena {
 public:
  __device__ explicit ReplyArena(const PacketJob& job)
      : used_(gpu::in_global(reinterpret_cast<unsigned long long*>(&job.words->reply_used))),
        begin_(job.reply_begin / 16),
        capacity_((job.reply_size - job.reply_begin) / 16) {}

  // Reserves `words`. False: the arena is too full. Called by one lane.
  __device__ bool reserve(uint32_t words) const {
    const uint64_t before = atomicAdd(used_, uint64_t{words} << 32);
    if ((before >> 32) + words <= capacity_) return true;
    give_back(words);
    return false;
  }
  // Gives back what was reserved and is not needed. Called by one lane.
  __device__ void give_back(uint32_t words) const {
    atomicAdd(used_, ~(uint64_t{words} << 32) + 1);
  }
  // Takes `words`, of which `reserved` are reserved already. Sets `begin` to where they begin.
  // False: the arena is too full; never if all were reserved. Called by one lane.
  __device__ bool take(uint32_t words, uint32_t reserved, uint32_t* begin) const {
    return settle(ask(words, reserved), words, reserved, begin);
  }
  // The same in two steps, for a caller that has other work until the answer comes.
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

__device__ inline bool fits_beside(const PacketJob& job, Bytes frame, uint32_t reply_bytes) {
  return net::fits_beside(static_cast<uint32_t>(frame.size), reply_bytes, job.frame_room);
}

// Where a reply beside `frame`, which is at `offset` of the input, begins in words of 16 bytes.
__device__ inline uint32_t beside_word(uint32_t offset, Bytes frame) {
  return (offset + net::arena_bytes(static_cast<uint32_t>(frame.size))) / 16;
}

// Copies staged replies to the places after their requests: the lanes' `replies`, which begin at
// word `from` of the stage, up to `words` in all, each to that lane's word `to` of the input.
// Called by the whole warp.
__device__ inline void send_beside(const PacketJob& job, const WarpStage& stage, uint32_t from,
                                   const gpu::LaneRanges& replies, uint32_t words, uint32_t to) {
  const auto* const source = reinterpret_cast<const uint4*>(stage.reply) + from;
  auto* const target = reinterpret_cast<uint4*>(job.input);
  replies.scatter(
      to, words, [source](uint32_t word) { return source[word]; },
      [target](uint32_t at, const uint4& word) { __stcs(target + at, word); });
  __syncwarp();
}

// Copies the first `words` of the staged replies to the arena, from word `base` on. Called by the
// whole warp.
__device__ inline void send_staged(const PacketJob& job, const WarpStage& stage, uint32_t words,
                                   uint32_t base) {
  const auto* source = reinterpret_cast<const uint4*>(stage.reply);
  auto* target = reinterpret_cast<uint4*>(job.reply_out) + base;
  for (uint32_t at = gpu::lane_id(); at < words; at += gpu::kWarpSize)
    __stcs(target + at, source[at]);
  __syncwarp();
}

// Words of a reply that is padded to the shortest frame.
inline constexpr uint32_t kShortReplyWords = (net::kEthernetFrameMin + 15) / 16;
static_assert(kShortReplyWords * gpu::kWarpSize <= kStageWords);

// Writes the short replies of the lanes that are `mine`, which compose(out) composes and whose size
// it returns: beside the requests where they fit, else to the arena. There, space for `reserved`
// replies is reserved; what is not needed is given back. Called by the whole warp.
template <typename Compose>
__device__ inline void send_short_replies(const PacketJob& job, WarpStage& stage, Bytes frame,
                                          uint32_t offset, bool mine, uint32_t reserved,
                                          const Compose& compose, PacketResult& result) {
  const bool beside =
      job.frame_room != 0 && mine && fits_beside(job, frame, net::kEthernetFrameMin);
  const uint32_t to_arena = __ballot_sync(gpu::kAllLanes, mine && !beside);
  const uint32_t to_frames = __ballot_sync(gpu::kAllLanes, beside);
  const uint32_t in_arena = __popc(to_arena);
  const uint32_t words = in_arena * kShortReplyWords;
  // Those for the arena lie first in the stage.
  const uint32_t before = (1u << gpu::lane_id()) - 1;
  const uint32_t place = __popc((beside ? to_frames : to_arena) & before) * kShortReplyWords;
  uint32_t base = 0;
  uint32_t fits = 1;
  if (gpu::lane_id() == 0 && (words != 0 || reserved != 0)) {
    const ReplyArena arena(job);
    fits = arena.take(words, min(words, reserved * kShortReplyWords), &base) ? 1 : 0;
    if (reserved > in_arena) arena.give_back((reserved - in_arena) * kShortReplyWords);
  }
  base = __shfl_sync(gpu::kAllLanes, base, 0);
  const bool sent = __shfl_sync(gpu::kAllLanes, fits, 0) != 0;
  if (mine) {
    uint8_t* const out = stage.reply + (beside ? words + place : place) * 16;
    const uint32_t size = compose(out);
    for (uint32_t at = size; at < kShortReplyWords * 16; ++at) out[at] = 0;
  }
  __syncwarp();
  if (sent && words != 0) send_staged(job, stage, words, base);
  if (to_frames != 0) {
    const gpu::LaneRanges replies(beside ? kShortReplyWords : 0);
    send_beside(job, stage, words, replies, replies.total(), beside_word(offset, frame));
  }
  if (!mine) return;
  if (beside) {
    result = PacketResult::done_beside(beside_word(0, frame) * 16, net::kEthernetFrameMin);
  } else {
    result = sent ? PacketResult::done((base + place) * 16, net::kEthernetFrameMin)
                  : PacketResult::not_done(PacketState::kNoReplySpace);
  }
}

}  // namespace warpcache::engine::cuda
