// SPDX-License-Identifier: Apache-2.0
//
// The second half: compose and send. Part of general_packets.cuh.
#pragma once

#include "engine/cuda/general_packets.cuh"

namespace warpcache::engine::cuda {

// Of what is `done`, as many replies at a time as the stage has room for.
__device__ inline void GeneralPackets::compose(bool done) {
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
  if (words != 0 && lane_id() == 0) arena_.give_back(words);
}

__device__ inline uint32_t GeneralPackets::reply_payload_bound() {
  const uint32_t frame = wire::reply_bound(state_.request, answer_);
  const bool carries = wire::reply_carries_value(state_.request, answer_);
  return carries ? frame + answer_.value_size : frame;
}

// Head, value and tail behind the place of the headers; long values are left out. Returns their
// bytes. Called by one lane.
__device__ inline uint32_t GeneralPackets::compose_own(uint8_t* out) {
  uint8_t* const begin = out + wire::reply_headers_size(packet_) + wire::kUdpHeaderSize;
  uint8_t* at = wire::compose_head(state_.request, answer_, context_.input, begin);
  value_place_ = nullptr;
  if (wire::reply_carries_value(state_.request, answer_)) {
    if (answer_.value_size <= kLaneValueMax) {
      quick_copy(at, answer_.value.data, answer_.value_size);
    } else {
      value_place_ = at;
    }
    at += answer_.value_size;
  }
  at = wire::compose_tail(state_.request, answer_, context_.input, at);
  return static_cast<uint32_t>(at - begin);
}

__device__ inline void GeneralPackets::put_large_values(bool mine) {
  uint32_t owners = __ballot_sync(kAllLanes, mine && value_place_ != nullptr);
  for (; owners != 0; owners &= owners - 1) {
    const int owner = __ffs(static_cast<int>(owners)) - 1;
    const auto from = __shfl_sync(kAllLanes, reinterpret_cast<uint64_t>(answer_.value.data), owner);
    const auto to = __shfl_sync(kAllLanes, reinterpret_cast<uint64_t>(value_place_), owner);
    const uint32_t size = __shfl_sync(kAllLanes, answer_.value_size, owner);
    quick_copy_by_warp(reinterpret_cast<uint8_t*>(to), reinterpret_cast<const uint8_t*>(from),
                       size);
  }
  __syncwarp();
}

// Headers, checksums and padding; returns the frame's bytes. Called by one lane.
__device__ inline uint32_t GeneralPackets::finish_own(uint8_t* out, uint32_t payload) {
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
__device__ inline void GeneralPackets::send(const LaneRanges& places, bool composed,
                                            uint32_t size) {
  const uint32_t words = (size + 15) / 16;
  const bool was_promised = composed && words <= promised_;
  uint32_t mine = words;
  bool sent = composed;
  uint32_t base = 0;
  while (true) {
    const uint32_t total = warp_last(warp_sum_to(mine));
    const uint32_t promised = warp_last(warp_sum_to(was_promised ? mine : 0));
    uint32_t fits = 0;
    if (lane_id() == 0) fits = arena_.take(total, promised, &base) ? 1 : 0;
    if (__shfl_sync(kAllLanes, fits, 0) != 0) break;
    // Those that have changed nothing come again.
    if (!was_promised) {
      if (composed) result_ = PacketResult::not_done(PacketState::kNoReplySpace);
      mine = 0;
      sent = false;
    }
  }
  base = __shfl_sync(kAllLanes, base, 0);
  const LaneRanges replies(mine);
  const auto* source = reinterpret_cast<const uint4*>(stage_.reply);
  auto* target = reinterpret_cast<uint4*>(job_.reply_out) + base;
  replies.for_each<4>(
      places.begin(), replies.total(), [source](uint32_t at) { return source[at]; },
      [target](uint32_t at, const uint4& word) { __stcs(target + at, word); });
  if (sent) result_ = PacketResult::done((base + replies.begin()) * 16, size);
  if (sent && was_promised) promised_ -= words;
  __syncwarp();
}

}  // namespace warpcache::engine::cuda
