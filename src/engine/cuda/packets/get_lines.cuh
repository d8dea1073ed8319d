// SPDX-License-Identifier: Apache-2.0
//
// Multigets: packets that are one get or gets line of several keys (protocol/framing/get_line.h).
// Lanes take keys, not packets: the keys of all lines in the staging buffer, up to kGroupKeys at a
// time, are spread over the warp.
//
// Steps, all lanes together:
//   open      a lane each: reads the headers of its packet; the warp sums up for UDP's checksums
//   split     the warp finds the keys of one line after the other, and lists them
//   look up   a lane a key: finds the item and the size of its part of the reply; a prefix sum
//             places the parts
//   allocate  a lane each: finds space for the reply of its packet, beside it or in the arena
//   write     windows of whole reply frames: a lane a key composes parts in the staging buffer, the
//             warp copies long values there and the frames to their places
// A packet that is something else, or a line with a key whose value is a chain or long, is left to
// the general path, as if it had not been looked at.
//
// Device code.
#pragma once

#include <cstdint>

#include "engine/cuda/packets/packet_stage.cuh"
#include "engine/cuda/packets/past_l1.cuh"
#include "engine/cuda/packets/reply_run.cuh"
#include "net/packet.h"
#include "protocol/compose/compose_text.h"
#include "protocol/framing/get_line.h"
#include "protocol/single_key/get.h"

namespace warpcache::engine::cuda {

// Keys of one line at most; the host handles longer lines.
inline constexpr uint32_t kGetLineKeysMax = 128;
// Values in multigets at most; the host handles longer ones. Bytes.
inline constexpr uint32_t kGetLineValueMax = 64 * 1024;

namespace get_lines_detail {

inline constexpr uint32_t kGroupKeys = 160;
static_assert(kGroupKeys >= kGetLineKeysMax);

// What is known of a key after its look-up: where its part begins, counted over all parts of the
// group and modulo 2^24, and above that its item (its offset in granules), or what kind of
// miss it is.
inline constexpr uint32_t kPositionBits = 24;
inline constexpr uint32_t kPositionMask = (1u << kPositionBits) - 1;
static_assert(kGetLineKeysMax * (kGetLineValueMax + protocol::kKeySizeMax + 64) <= kPositionMask);
// The index is at the start of the arena, so that no item has these offsets.
inline constexpr uint64_t kNotThere = 0;
inline constexpr uint64_t kExpired = 1;
inline constexpr uint64_t kFlushed = 2;
inline constexpr uint64_t kMisses = 3;  // items are at or above it

// Where the keys of a group are in the staging buffer, until they have been looked up.
struct KeyBounds {
  uint16_t first[kGroupKeys];
  uint16_t last[kGroupKeys];
  uint8_t owner[kGroupKeys];  // the packet's lane
};

// How the reply half of the staging buffer is used.
struct GetStage {
  uint64_t keys[kGroupKeys + 2];  // the one after the last key has the position of the end
  union {
    KeyBounds bounds;
    alignas(16) uint8_t window[kStageBytes - sizeof(keys)];  // reply frames
  };
};
static_assert(sizeof(GetStage) == kStageBytes);
inline constexpr uint32_t kWindowWords = sizeof(GetStage::window) / 16;
static_assert(kWindowWords >= kRunFrameWords);

// What a part shows of an item.
struct Shown {
  const uint8_t* key;  // the value follows it
  uint32_t key_size;
  uint32_t client_flags;
  uint32_t value_size;
  bool with_cas;
  uint64_t cas;

  __device__ const uint8_t* value() const { return key + key_size; }
};

// Bytes before the value.
__device__ inline uint32_t head_bytes(const Shown& shown) {
  using protocol::single_key::digits_of;
  uint32_t bytes =
      6 + shown.key_size + 1 + digits_of(shown.client_flags) + 1 + digits_of(shown.value_size) + 2;
  if (shown.with_cas) {
    bytes += 2;
    for (uint64_t left = shown.cas; left > 9; left /= 10) ++bytes;
  }
  return bytes;
}

// Of a whole part; END follows the last one.
__device__ inline uint32_t part_bytes(const Shown& shown, bool is_last) {
  return head_bytes(shown) + shown.value_size + 2 + (is_last ? 5 : 0);
}

// A packet's frames in the window.
struct Place {
  uint32_t payload;  // offset of the first frame's payload in the window
  uint32_t stride;   // bytes from frame to frame
  uint32_t frame;    // number of the first frame
  uint32_t end;      // of the bytes of the reply that are in the window

  // Where byte `at` of the reply is in the window.
  __device__ uint32_t of(uint32_t at) const {
    const uint32_t number = at / protocol::kUdpPayloadMax;
    return payload + (number - frame) * stride + (at - number * protocol::kUdpPayloadMax);
  }
  __device__ uint32_t begin() const { return frame * protocol::kUdpPayloadMax; }
  __device__ Place from_lane(int lane) const {
    return {__shfl_sync(gpu::kAllLanes, payload, lane), __shfl_sync(gpu::kAllLanes, stride, lane),
            __shfl_sync(gpu::kAllLanes, frame, lane), __shfl_sync(gpu::kAllLanes, end, lane)};
  }
};

// The checksum's sum over staged bytes, which begin at an even address. Called by the whole warp.
__device__ inline uint32_t sum_of_words(const uint8_t* data, uint32_t size) {
  const auto skip = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(data) % 4);
  const uint32_t end = skip + size;
  uint32_t sum = 0;
  for (uint32_t at = 4 * gpu::lane_id(); at < end; at += 4 * gpu::kWarpSize) {
    uint32_t word = load_aligned<uint32_t>(data - skip + at);
    if (at < skip) word &= 0xffff0000u;
    if (end - at < 4) word &= 0xffffffffu >> (8 * (4 - (end - at)));
    sum += (word & 0xffff) + (word >> 16);
  }
  return __reduce_add_sync(gpu::kAllLanes, sum);
}

}  // namespace get_lines_detail

// Whether a frame may be a multiget: false for nearly all others. Called by one lane.
__device__ inline bool may_be_get_line(const PacketJob& job, Bytes frame) {
  using namespace protocol::single_key;
  if (!may_be_single_key(job, frame.data) || frame.size < kKey + 3) return false;
  const bool usual = word16(frame.data, net::kEtherTypeOffset) == big16(net::kEtherTypeIpv4) &&
                     frame.data[kIp] == 0x45;
  return !usual || (word16(frame.data, kPayload) == ('g' | 'e' << 8) &&
                    (frame.data[kPayload + 3] == ' ' || frame.data[kPayload + 4] == ' '));
}

// One chunk, as seen by one lane. Every function is called by the whole warp unless it says
// otherwise.
class GetLines {
 public:
  // REQUIRES: the block is in its epoch when run() is called.
  __device__ GetLines(const store::Core& core, const PacketJob& job, WarpStage& stage, Tally& tally)
      : core_(core),
        job_(job),
        input_(stage.input),
        stage_(reinterpret_cast<get_lines_detail::GetStage&>(stage.reply)),
        tally_(tally),
        pairs_(load_relaxed(&core.shared->pair_count)),
        flush_generation_(load_relaxed(&core.shared->flush_generation)) {}

  // Answers this lane's `frame` if it has one (`here`) and it is a multiget; it is at `offset` of
  // the job's input. Returns whether it is settled: `result` is set.
  __device__ bool run(Bytes frame, uint32_t offset, bool here, PacketResult& result);

 private:
  using Place = get_lines_detail::Place;
  using Shown = get_lines_detail::Shown;
  enum class Split : uint8_t { kListed, kFull, kOther };

  __device__ bool open();
  __device__ bool verify(bool opened) const;
  __device__ Split split(int owner);
  __device__ uint32_t list(uint16_t* bounds, uint32_t number, uint32_t marks, uint32_t at) const;
  __device__ void look_up();
  __device__ uint64_t judge(const PastL1::Found& found, bool with_cas, bool is_last,
                            uint32_t& bytes, bool& other) const;
  __device__ bool allocate(uint32_t offset);
  __device__ PacketResult result_of() const;
  __device__ void write();
  __device__ void compose_parts(const Place& place, bool mine);
  __device__ void compose_part(const Place& place, uint32_t begin, uint32_t number, bool is_last,
                               const Shown& shown, bool here);
  __device__ void copy_value(const Place& place, const Shown& shown, uint32_t begin,
                             bool here) const;
  __device__ void finish_frames(const Place& place, uint32_t frames, bool mine);
  __device__ void compose_headers(const Place& place, uint32_t number, uint32_t sum);
  __device__ void count();
  __device__ uint32_t first_after(uint32_t at) const;
  __device__ bool load_shown(uint32_t number, bool with_cas, Shown& shown) const;
  // Where the part of a key of the group begins, modulo 2^24.
  __device__ uint32_t position(uint32_t number) const {
    return static_cast<uint32_t>(stage_.keys[number]) & get_lines_detail::kPositionMask;
  }
  __device__ uint64_t item_of(uint32_t number) const {
    return stage_.keys[number] >> get_lines_detail::kPositionBits;
  }
  // From the start of a frame to its payload.
  __device__ uint32_t headers() const {
    return net::reply_headers_size(packet_) + protocol::kUdpHeaderSize;
  }

  const store::Core& core_;
  const PacketJob& job_;
  uint8_t* input_;
  get_lines_detail::GetStage& stage_;
  Tally& tally_;
  uint32_t pairs_;             // an outdated count only makes the search longer
  uint32_t flush_generation_;  // likewise, a look at the current one decides
  uint32_t used_ = 0;          // keys of the group
  // Of the lane's packet:
  Bytes frame_ = {};
  net::Packet packet_ = {};
  uint16_t request_id_ = 0;
  bool with_cas_ = false;
  bool mine_ = false;        // its keys are in the group, and it will be answered
  uint32_t line_begin_ = 0;  // of the keys, in the input half of the staging buffer
  uint32_t line_end_ = 0;
  uint32_t first_key_ = 0;  // in the group
  uint32_t key_count_ = 0;
  uint32_t bytes_ = 0;  // of the reply
  FrameRun run_ = {};
  bool beside_ = false;  // the reply lies in the request's buffer
  uint32_t base_ = 0;    // word of input or arena where the reply begins
};

}  // namespace warpcache::engine::cuda

#include "engine/cuda/packets/get_lines_input.cuh"
#include "engine/cuda/packets/get_lines_reply.cuh"
