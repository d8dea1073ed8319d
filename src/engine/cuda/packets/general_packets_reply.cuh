// SPDX-License-Identifier: Apache-2.0
//
// The second half: compose and send. Part of general_packets.cuh.
#pragma once

#include "engine/cuda/packets/general_packets.cuh"

namespace warpcache::engine::cuda {

// Composes the replies of the lanes that are `done`: replies of one frame first, as many at a time
// as fit into the staging buffer, then those of several frames.
__device__ inline void GeneralPackets::compose(bool done) {
  uint32_t bound = 0;  // bytes of head and tail
  if (done) bound = protocol::reply_bound(state_.request, answer_);
  if (done && bound == 0) result_ = PacketResult::done(0, 0);
  const uint32_t with_value = bound + (carries_value() ? answer_.value_size : 0);
  const bool is_long = with_value > protocol::kUdpPayloadMax;
  // The request has had no effect: judge() has seen that it does not change the store.
  const bool for_host = is_long && (answer_.chained || bound > kLongEndsMax);
  if (done && for_host) result_ = PacketResult::not_done(PacketState::kHost);
  const bool answers = done && bound != 0 && !for_host;
  compose_frames(answers && !is_long, with_value);
  if (__any_sync(gpu::kAllLanes, answers && is_long)) compose_runs(answers && is_long, bound);
  // Reserved words that are not needed.
  const uint32_t words = gpu::warp_last(gpu::warp_sum_to(reserved_));
  if (words != 0 && gpu::lane_id() == 0) arena_.give_back(words);
}

__device__ inline bool GeneralPackets::carries_value() const {
  return protocol::reply_carries_value(state_.request, answer_);
}

__device__ inline void GeneralPackets::compose_frames(bool waits, uint32_t bound) {
  while (__any_sync(gpu::kAllLanes, waits)) {
    const gpu::LaneRanges space(waits ? reply_words(bound) : 0);
    const bool mine = waits && space.end() <= kStageWords;
    const gpu::LaneRanges places(mine ? reply_words(bound) : 0);
    uint8_t* const out = stage_.reply + places.begin() * 16;
    uint32_t payload = 0;
    if (mine) payload = compose_own(out);
    copy_values(mine && value_place_ != nullptr, value_place_, answer_.value.data,
                answer_.value_size);
    uint32_t size = 0;
    if (mine && payload != 0) size = finish_own(out, payload);
    __syncwarp();
    send(places, mine, size);
    waits = waits && !mine;
  }
}

// Composes as many heads and tails as fit into the staging buffer after the space for one frame;
// then sends one reply after the other.
__device__ inline void GeneralPackets::compose_runs(bool waits, uint32_t bound) {
  while (__any_sync(gpu::kAllLanes, waits)) {
    const gpu::LaneRanges space(waits ? FrameRun::words_of(bound) : 0);
    const bool mine = waits && kRunFrameWords + space.end() <= kStageWords;
    LongReply reply;
    if (mine) {
      uint8_t* const out = stage_.reply + (kRunFrameWords + space.begin()) * 16;
      uint8_t* const tail = protocol::compose_head(state_.request, answer_, context_.input, out);
      uint8_t* const end = protocol::compose_tail(state_.request, answer_, context_.input, tail);
      reply.ends = {out, static_cast<uint32_t>(tail - out), static_cast<uint32_t>(end - tail)};
      if (carries_value()) reply.value = {answer_.value.data, answer_.value_size};
    }
    __syncwarp();
    uint32_t owners = __ballot_sync(gpu::kAllLanes, mine);
    for (; owners != 0; owners &= owners - 1) {
      const int owner = __ffs(static_cast<int>(owners)) - 1;
      const PacketResult result =
          send_run(job_, stage_, owner, reply, frame_.data, packet_, udp_header_, reserved_);
      if (gpu::lane_id() == static_cast<uint32_t>(owner)) result_ = result;
    }
    waits = waits && !mine;
  }
}

// Writes head, value and tail after the space for the headers, without long values. Returns the
// bytes. Called by one lane.
__device__ inline uint32_t GeneralPackets::compose_own(uint8_t* out) {
  uint8_t* const begin = out + net::reply_headers_size(packet_) + protocol::kUdpHeaderSize;
  uint8_t* at = protocol::compose_head(state_.request, answer_, context_.input, begin);
  value_place_ = nullptr;
  if (carries_value()) {
    if (answer_.value_size <= kLaneValueMax) {
      copy_past_l1(at, answer_.value.data, answer_.value_size);
    } else {
      value_place_ = at;
    }
    at += answer_.value_size;
  }
  at = protocol::compose_tail(state_.request, answer_, context_.input, at);
  return static_cast<uint32_t>(at - begin);
}

// Writes headers, checksums and padding; returns the bytes of the frame. Called by one lane.
__device__ inline uint32_t GeneralPackets::finish_own(uint8_t* out, uint32_t payload) {
  const uint32_t udp_payload = protocol::kUdpHeaderSize + payload;
  net::compose_reply_headers(frame_.data, packet_, udp_payload, out);
  protocol::UdpHeader header = udp_header_;
  header.sequence = 0;
  header.count = 1;
  const uint32_t headers = net::reply_headers_size(packet_);
  protocol::compose_udp_header(header, out + headers);
  net::finish_udp_checksum(packet_, udp_payload, out);
  return net::pad_frame(out, headers + udp_payload);
}

// Copies composed frames to the arena, one after the other. `places`: where they are in the staging
// buffer.
__device__ inline void GeneralPackets::send(const gpu::LaneRanges& places, bool composed,
                                            uint32_t size) {
  const uint32_t words = (size + 15) / 16;
  const bool was_reserved = composed && words <= reserved_;
  uint32_t mine = words;
  bool sent = composed;
  uint32_t base = 0;
  while (true) {
    const uint32_t total = gpu::warp_last(gpu::warp_sum_to(mine));
    const uint32_t reserved = gpu::warp_last(gpu::warp_sum_to(was_reserved ? mine : 0));
    uint32_t fits = 0;
    if (gpu::lane_id() == 0) fits = arena_.take(total, reserved, &base) ? 1 : 0;
    if (__shfl_sync(gpu::kAllLanes, fits, 0) != 0) break;
    // Requests that have changed nothing run again.
    if (!was_reserved) {
      if (composed) result_ = PacketResult::not_done(PacketState::kNoReplySpace);
      mine = 0;
      sent = false;
    }
  }
  base = __shfl_sync(gpu::kAllLanes, base, 0);
  const gpu::LaneRanges replies(mine);
  const auto* source = reinterpret_cast<const uint4*>(stage_.reply);
  auto* target = reinterpret_cast<uint4*>(job_.reply_out) + base;
  replies.for_each<4>(
      places.begin(), replies.total(), [source](uint32_t at) { return source[at]; },
      [target](uint32_t at, const uint4& word) { __stcs(target + at, word); });
  if (sent) result_ = PacketResult::done((base + replies.begin()) * 16, size);
  if (sent && was_reserved) reserved_ -= words;
  __syncwarp();
}

}  // namespace warpcache::engine::cuda
