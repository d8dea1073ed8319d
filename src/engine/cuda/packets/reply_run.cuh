// SPDX-License-Identifier: Apache-2.0
//
// Replies of several datagrams: a warp writes them to the arena as a FrameRun, one reply after the
// other; all lanes compose each frame. Device code.
#pragma once

#include <cstdint>

#include "engine/cuda/packets/packet_stage.cuh"

namespace warpcache::engine::cuda {

// The staging buffer in this use: one frame, then heads and tails of replies.
inline constexpr uint32_t kRunFrameWords =
    FrameRun::words_of(net::kReplyHeadersMax + protocol::kUdpDatagramMax);
static_assert(kRunFrameWords < kStageWords);

// The bytes before and after a value, contiguous in the staging buffer.
struct ReplyEnds {
  const uint8_t* data = nullptr;
  uint32_t head_bytes = 0;
  uint32_t tail_bytes = 0;
};

// The layout for a reply of `bytes` to `packet`.
__device__ inline FrameRun run_of(const net::Packet& packet, uint32_t bytes) {
  const auto frame_size = [&packet](uint32_t payload) {
    return net::reply_frame_size(packet, protocol::kUdpHeaderSize + payload);
  };
  const uint32_t count = protocol::udp_datagram_count(bytes);
  return {count, frame_size(protocol::kUdpPayloadMax),
          frame_size(protocol::udp_payload_size(bytes, count - 1)), 0};
}

// Words of the arena that a run needs.
__device__ inline uint32_t run_words(const FrameRun& run) {
  return FrameRun::begin_of(run.count - 1, run.frame_bytes) + FrameRun::words_of(run.last_bytes);
}

// A reply, known to all lanes.
struct LongReply {
  ReplyEnds ends;
  Bytes value;  // in the store

  __device__ uint32_t bytes() const {
    return ends.head_bytes + static_cast<uint32_t>(value.size) + ends.tail_bytes;
  }
};

namespace reply_run_detail {

__device__ inline LongReply from_lane(const LongReply& mine, int lane) {
  LongReply reply;
  reply.ends.data = gpu::pointer_of(mine.ends.data, lane);
  reply.ends.head_bytes = __shfl_sync(gpu::kAllLanes, mine.ends.head_bytes, lane);
  reply.ends.tail_bytes = __shfl_sync(gpu::kAllLanes, mine.ends.tail_bytes, lane);
  reply.value.data = gpu::pointer_of(mine.value.data, lane);
  reply.value.size = __shfl_sync(gpu::kAllLanes, static_cast<uint32_t>(mine.value.size), lane);
  return reply;
}

__device__ inline FrameRun from_lane(const FrameRun& mine, int lane) {
  return {__shfl_sync(gpu::kAllLanes, mine.count, lane),
          __shfl_sync(gpu::kAllLanes, mine.frame_bytes, lane),
          __shfl_sync(gpu::kAllLanes, mine.last_bytes, lane), 0};
}

// Copies bytes [begin, begin + size) of a reply to `out`.
__device__ inline void copy_part(const LongReply& reply, uint32_t begin, uint32_t size,
                                 uint8_t* out) {
  const uint32_t end = begin + size;
  const uint32_t head = reply.ends.head_bytes;
  const auto value = static_cast<uint32_t>(reply.value.size);
  for (uint32_t at = begin + gpu::lane_id(); at < min(end, head); at += gpu::kWarpSize) {
    out[at - begin] = reply.ends.data[at];
  }
  const uint32_t first = max(begin, head);
  const uint32_t last = min(end, head + value);
  if (first < last) {
    gpu::warp_copy(out + first - begin, reply.value.data + first - head, last - first);
  }
  for (uint32_t at = max(begin, head + value) + gpu::lane_id(); at < end; at += gpu::kWarpSize) {
    out[at - begin] = reply.ends.data[at - value];
  }
  __syncwarp();
}

// The checksum's sum over staged bytes, which begin at an even address.
__device__ inline uint32_t sum_staged(const uint8_t* data, uint32_t size) {
  uint32_t sum = 0;
  for (uint32_t at = 2 * gpu::lane_id(); at < size; at += 2 * gpu::kWarpSize) {
    sum += at + 1 < size ? load_aligned<uint16_t>(data + at) : data[at];
  }
  return __reduce_add_sync(gpu::kAllLanes, sum);
}

}  // namespace reply_run_detail

// Writes the reply of lane `owner` to the arena. `reply`, `frame`, `packet` and `header` are that
// lane's, and so is `reserved`, the words reserved for it, which is reduced by what is used.
// Returns the packet's result in that lane. Called by the whole warp.
__device__ inline PacketResult send_run(const PacketJob& job, WarpStage& stage, int owner,
                                        const LongReply& own, const uint8_t* frame,
                                        const net::Packet& packet, protocol::UdpHeader header,
                                        uint32_t& reserved) {
  using namespace reply_run_detail;
  const bool owns = gpu::lane_id() == static_cast<uint32_t>(owner);
  const LongReply reply = from_lane(own, owner);
  const FrameRun run = from_lane(owns ? run_of(packet, own.bytes()) : FrameRun{}, owner);
  const uint32_t headers = __shfl_sync(gpu::kAllLanes, net::reply_headers_size(packet), owner) +
                           protocol::kUdpHeaderSize;
  const bool checksum = __any_sync(gpu::kAllLanes, owns && packet.has_udp_checksum);
  const uint32_t words = run_words(run);
  const uint32_t covered = min(words, __shfl_sync(gpu::kAllLanes, reserved, owner));
  uint32_t base = 0;
  uint32_t fits = 0;
  if (gpu::lane_id() == 0) fits = ReplyArena(job).take(words, covered, &base) ? 1 : 0;
  if (__shfl_sync(gpu::kAllLanes, fits, 0) == 0) {
    return PacketResult::not_done(PacketState::kNoReplySpace);
  }
  base = __shfl_sync(gpu::kAllLanes, base, 0);
  if (owns) {
    reserved -= covered;
    reinterpret_cast<uint4*>(job.reply_out)[base] = {run.count, run.frame_bytes, run.last_bytes, 0};
  }
  header.count = static_cast<uint16_t>(run.count);
  for (uint32_t i = 0; i < run.count; ++i) {
    const uint32_t payload = protocol::udp_payload_size(reply.bytes(), i);
    copy_part(reply, i * protocol::kUdpPayloadMax, payload, stage.reply + headers);
    const uint32_t sum = checksum ? sum_staged(stage.reply + headers, payload) : 0;
    if (owns) {
      header.sequence = static_cast<uint16_t>(i);
      uint8_t* const own_header = stage.reply + headers - protocol::kUdpHeaderSize;
      const uint32_t udp_payload = protocol::kUdpHeaderSize + payload;
      net::compose_reply_headers(frame, packet, udp_payload, stage.reply);
      protocol::compose_udp_header(header, own_header);
      net::finish_udp_checksum_of_sum(packet, udp_payload,
                                      net::checksum_add(sum, own_header, protocol::kUdpHeaderSize),
                                      stage.reply);
      (void)net::pad_frame(stage.reply, headers + payload);
    }
    __syncwarp();
    const uint32_t bytes = i + 1 == run.count ? run.last_bytes : run.frame_bytes;
    send_staged(job, stage, FrameRun::words_of(bytes),
                base + FrameRun::begin_of(i, run.frame_bytes));
  }
  return PacketResult::done_run(base * PacketResult::kReplyGranule);
}

}  // namespace warpcache::engine::cuda
