// SPDX-License-Identifier: Apache-2.0
//
// The second half of a chunk: compose and send. Part of packet_warp.cuh.
#pragma once

#include "engine/cuda/packet_warp.cuh"

namespace warpcache::engine::cuda {

namespace packet_detail {

// Longer values are copied by the whole warp.
inline constexpr uint32_t kLaneValueMax = 64;

__device__ inline void copy_words(uint8_t* out, const uint8_t* in, uint32_t size) {
  uint32_t at = 0;
  for (; at + 8 <= size; at += 8) {
    uint8_t bytes[8];
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) bytes[i] = in[at + i];
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) out[at + i] = bytes[i];
  }
  for (; at < size; ++at) out[at] = in[at];
}

}  // namespace packet_detail

// Of what is `done`, as many replies at a time as the stage has room for.
__device__ inline void PacketWarp::compose(bool done) {
  uint32_t bound = 0;  // bytes of what memcached answers
  if (done) bound = reply_payload_bound();
  bool waits = done && bound != 0 && bound <= wire::kUdpPayloadMax;
  if (done && bound == 0) result_ = PacketResult::done(0, 0);
  if (done && bound > wire::kUdpPayloadMax) {
    // Nothing has happened: what changes the store was judged before.
    result_ = PacketResult::not_done(PacketState::kHost);
  }
  while (__any_sync(kAllLanes, waits)) {
    const LaneRanges room(waits ? reply_words(bound) : 0);
    const bool mine = waits && room.end() <= kStageWords;
    const LaneRanges places(mine ? reply_words(bound) : 0);
    uint8_t* const out = stage_.reply + places.begin() * 16;
    uint32_t payload = 0;
    if (mine) payload = compose_own(out);
    put_large_values(mine);
    uint32_t size = 0;
    if (mine && payload != 0) size = finish_own(out, payload);
    __syncwarp();
    send(places, mine, size);
    waits = waits && !mine;
  }
  // What was promised too much.
  const uint32_t words = warp_last(warp_sum_to(promised_));
  if (words != 0 && lane_id() == 0) {
    atomicAdd(reply_used(), ~(uint64_t{words} << 32) + 1);
  }
}

__device__ inline uint32_t PacketWarp::reply_payload_bound() {
  const uint32_t frame = wire::reply_bound(state_.request, answer_);
  const bool carries = wire::reply_carries_value(state_.request, answer_);
  return carries ? frame + answer_.value_size : frame;
}

// Head, value and tail behind the place of the headers; long values are left out. Returns their
// bytes. Called by one lane.
__device__ inline uint32_t PacketWarp::compose_own(uint8_t* out) {
  uint8_t* const begin = out + wire::reply_headers_size(packet_) + wire::kUdpHeaderSize;
  uint8_t* at = wire::compose_head(state_.request, answer_, context_.input, begin);
  value_place_ = nullptr;
  if (wire::reply_carries_value(state_.request, answer_)) {
    if (answer_.value_size <= packet_detail::kLaneValueMax) {
      packet_detail::copy_words(at, answer_.value.data, answer_.value_size);
    } else {
      value_place_ = at;
    }
    at += answer_.value_size;
  }
  at = wire::compose_tail(state_.request, answer_, context_.input, at);
  return static_cast<uint32_t>(at - begin);
}

__device__ inline void PacketWarp::put_large_values(bool mine) {
  uint32_t owners = __ballot_sync(kAllLanes, mine && value_place_ != nullptr);
  for (; owners != 0; owners &= owners - 1) {
    const int owner = __ffs(static_cast<int>(owners)) - 1;
    const auto from = __shfl_sync(kAllLanes, reinterpret_cast<uint64_t>(answer_.value.data), owner);
    const auto to = __shfl_sync(kAllLanes, reinterpret_cast<uint64_t>(value_place_), owner);
    const uint32_t size = __shfl_sync(kAllLanes, answer_.value_size, owner);
    (void)warp_put(reinterpret_cast<uint8_t*>(to), {reinterpret_cast<const uint8_t*>(from), size});
  }
  __syncwarp();
}

// Headers, checksums and padding; returns the frame's bytes. Called by one lane.
__device__ inline uint32_t PacketWarp::finish_own(uint8_t* out, uint32_t payload) {
  const uint32_t udp_payload = wire::kUdpHeaderSize + payload;
  wire::compose_reply_headers(frame_.data, packet_, udp_payload, out);
  wire::UdpHeader header = udp_header_;
  header.sequence = 0;
  header.count = 1;
  const uint32_t headers = wire::reply_headers_size(packet_);
  wire::compose_udp_header(header, out + headers);
  wire::finish_udp_checksum(packet_, udp_payload, out);
  return wire::pad_frame(out, headers + udp_payload);
}

// Composed frames go to the arena, behind each other. `places`: where they are in the stage.
__device__ inline void PacketWarp::send(const LaneRanges& places, bool composed, uint32_t size) {
  const uint32_t words = (size + 15) / 16;
  const bool was_promised = composed && words <= promised_;
  uint32_t mine = words;
  bool sent = composed;
  uint32_t base = 0;
  while (true) {
    const uint32_t total = warp_last(warp_sum_to(mine));
    const uint32_t asked = warp_last(warp_sum_to(was_promised ? 0 : mine));
    uint32_t fits = 1;
    if (lane_id() == 0) {
      const uint64_t before = atomicAdd(reply_used(), uint64_t{asked} << 32 | total);
      base = static_cast<uint32_t>(before);
      const uint64_t end = job_.reply_begin / 16 + (before >> 32) + asked;
      fits = asked == 0 || end <= job_.reply_size / 16 ? 1 : 0;
      if (fits == 0) atomicAdd(reply_used(), ~(uint64_t{asked} << 32 | total) + 1);
    }
    fits = __shfl_sync(kAllLanes, fits, 0);
    if (fits != 0) break;
    // Those that have changed nothing come again.
    if (!was_promised) {
      if (composed) result_ = PacketResult::not_done(PacketState::kNoReplySpace);
      mine = 0;
      sent = false;
    }
  }
  base = __shfl_sync(kAllLanes, base, 0) + job_.reply_begin / 16;
  const LaneRanges replies(mine);
  const auto* source = reinterpret_cast<const uint4*>(stage_.reply);
  auto* target = reinterpret_cast<uint4*>(job_.reply_out) + base;
  replies.for_each(
      places.begin(), [source](uint32_t at) { return source[at]; },
      [target](uint32_t at, const uint4& word) { __stcs(target + at, word); });
  if (sent) result_ = PacketResult::done((base + replies.begin()) * 16, size);
  if (sent && was_promised) promised_ -= words;
  __syncwarp();
}

}  // namespace warpcache::engine::cuda
