// SPDX-License-Identifier: Apache-2.0
//
// A warp works off a chunk: up to 32 whole Ethernet frames, a lane each, after MemcachedGPU and
// GNoM (SoCC 2015). Packets are datagrams, each for itself: nothing orders them. Input and replies
// pass through shared memory, so that the bus sees nothing but coalesced 16-byte words.
//
// Steps, for as many of the chunk's frames as find room in the stage, until all are done:
//   stage     the frames come in
//   open      headers are read, framing finds the command, the command is parsed
//   admit     writers are promised space for their replies, and room in the index
//   execute   every lane its request
//   compose   reply frames, as many at a time as find room in the stage, and out they go
//
// Device code.
#pragma once

#include <cstdint>

#include "engine/cuda/job_kernel.cuh"
#include "engine/cuda/warp.cuh"
#include "request/stages.h"
#include "wire/frame.h"
#include "wire/packet.h"
#include "wire/udp_frame.h"

namespace warpcache::engine::cuda {

// Of frames that a warp holds at a time. A larger one is the host's.
inline constexpr uint32_t kStageBytes = 6 * 1024;
inline constexpr uint32_t kStageWords = kStageBytes / 16;
static_assert(kStageBytes >= wire::kReplyHeadersMax + wire::kUdpDatagramMax);
static_assert(PacketResult::kSizeMax >= wire::kReplyHeadersMax + wire::kUdpDatagramMax);

// Shared memory of one warp.
struct WarpStage {
  alignas(16) uint8_t input[kStageBytes];
  alignas(16) uint8_t reply[kStageBytes];
};

// The chunk as one lane sees it. Every function is called by the whole warp unless it says
// otherwise.
class PacketWarp {
 public:
  // REQUIRES: the block is in its epoch, as the reader of this block.
  __device__ PacketWarp(const BlockResources& resources, const PacketJob& job, WarpStage& stage,
                        Tally& tally)
      : job_(job), stage_(stage), tally_(tally) {
    const uint32_t reader = job.first_reader + blockIdx.x;
    thread_.slot = &resources.core.epochs[reader];
    thread_.counters = &resources.counters[reader];
    thread_.lane = reader % resources.core.shared->lane_count;
    context_.store = {resources.core};
    context_.thread = &thread_;
    context_.input = stage.input;
    context_.clock = job.clock;
    context_.counters = &tally.counters;
    context_.item_size_max = job.item_size_max;
    context_.cas_enabled = job.cas_enabled;
    context_.out_of_memory = job.out_of_memory;
  }

  // Works off `count` packets from `first` on. All is written when it returns.
  __device__ void run(uint32_t first, uint32_t count) {
    const bool here = lane_id() < count;
    PacketSlot slot = {0, 0};
    if (here) slot = load_slot(first + lane_id());
    const uint32_t from = slot.offset / 16;
    const uint32_t words = (slot.offset % 16 + slot.size + 15) / 16;
    result_ = PacketResult::not_done(PacketState::kHost);
    bool waits = here && words <= kStageWords;
    while (__any_sync(kAllLanes, waits)) {
      const LaneRanges ranges(waits ? words : 0);
      const bool taken = waits && ranges.end() <= kStageWords;
      bring_in(taken ? words : 0, from);
      frame_ = {stage_.input + ranges.begin() * 16 + slot.offset % 16, slot.size};
      work(taken);
      waits = waits && !taken;
    }
    if (here) job_.packets[first + lane_id()] = result_;
    const PacketState state = result_.state();
    const bool undone = here && state != PacketState::kDone && state != PacketState::kDropped;
    const uint32_t count_undone = __popc(__ballot_sync(kAllLanes, undone));
    if (lane_id() == 0 && count_undone != 0) atomicAdd(&tally_.undone, count_undone);
  }

 private:
  __device__ PacketSlot load_slot(uint32_t number) const;
  __device__ void bring_in(uint32_t words, uint32_t from);
  __device__ void work(bool taken);
  __device__ bool open();
  __device__ bool judge();
  __device__ uint32_t value_ahead() const;
  __device__ bool admit(bool runs);
  __device__ void make_index_room(bool runs);
  __device__ bool execute(bool runs);
  __device__ void compose(bool done);
  __device__ uint32_t reply_payload_bound();
  __device__ uint32_t compose_own(uint8_t* out);
  __device__ void put_large_values(bool mine);
  __device__ uint32_t finish_own(uint8_t* out, uint32_t payload);
  __device__ void send(const LaneRanges& places, bool composed, uint32_t size);
  __device__ unsigned long long* reply_used() const {
    return reinterpret_cast<unsigned long long*>(job_.reply_used);
  }
  // The words that a reply frame takes.
  __device__ uint32_t reply_words(uint32_t payload) const {
    return (wire::reply_frame_size(packet_, wire::kUdpHeaderSize + payload) + 15) / 16;
  }

  const PacketJob& job_;
  WarpStage& stage_;
  Tally& tally_;
  store::ThreadContext thread_;
  request::Context context_;
  // Of the lane's packet:
  Bytes frame_ = {};
  wire::Packet packet_ = {};
  wire::UdpHeader udp_header_;
  request::RequestState state_;
  wire::Result answer_;
  PacketResult result_ = {};
  bool changes_ = false;            // may change the store
  uint32_t promised_ = 0;           // words of the arena, for its reply
  uint8_t* value_place_ = nullptr;  // in the stage
  // Of the warp: keys that it has reported to the index beforehand.
  int expected_items_ = 0;
};

}  // namespace warpcache::engine::cuda

#include "engine/cuda/packet_warp_input.cuh"
#include "engine/cuda/packet_warp_reply.cuh"
