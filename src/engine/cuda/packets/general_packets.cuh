// SPDX-License-Identifier: Apache-2.0
//
// The general path of packets: any request that fits into one packet, with the stages that all
// engines share. It runs up to 32 frames in the warp's staging buffer, one lane each.
//
// Steps, all lanes together:
//   open      reads headers, finds the command and parses it
//   judge     leaves some to the host; of several plain SETs of a key one will be applied
//   admit     reserves reply space for writes, and ways in the index
//   execute   each lane runs its request
//   compose   builds the reply frames that fit into the staging buffer together, and sends them;
// then replies of several frames, one after the other (reply_run.cuh)
//
// Device code.
#pragma once

#include <cstdint>

#include "engine/cuda/packets/packet_writes.cuh"
#include "engine/cuda/packets/reply_run.cuh"
#include "net/packet.h"
#include "protocol/framing/frame.h"
#include "protocol/framing/udp_frame.h"
#include "request/stages.h"

namespace warpcache::engine::cuda {

// Bytes of head and tail of a reply of several datagrams. The host handles longer ones.
inline constexpr uint32_t kLongEndsMax = (kStageWords - kRunFrameWords) * 16;

// One chunk, as seen by one lane. Every function is called by the whole warp unless it says
// otherwise.
class GeneralPackets {
 public:
  // REQUIRES: the block is in its epoch, as the reader of this block.
  __device__ GeneralPackets(const BlockResources& resources, const PacketJob& job, WarpStage& stage,
                            Tally& tally)
      : job_(job),
        stage_(stage),
        tally_(tally),
        arena_(job),
        thread_(thread_of_block(resources, job)) {
    context_.store = {resources.core};
    context_.thread = &thread_;
    context_.input = stage.input;
    context_.clock = job.clock;
    context_.counters = &tally.counters;
    context_.item_size_max = job.item_size_max;
    context_.cas_enabled = job.cas_enabled;
    context_.out_of_memory = job.out_of_memory;
  }

  // Runs this lane's `frame`, if it has one (`here`). The frame is in the staging buffer, and at
  // `offset` of the job's input. Returns the packet's result; its reply is in the arena.
  __device__ PacketResult run(Bytes frame, uint32_t offset, bool here) {
    frame_ = frame;
    frame_offset_ = offset;
    result_ = PacketResult::not_done(PacketState::kHost);
    bool runs = here && open() && judge();
    combined_ = runs && changes_ && combines();
    __syncwarp();
    runs = admit(runs);
    const bool done = execute(runs);
    compose(done);
    return result_;
  }

 private:
  __device__ bool open();
  __device__ bool judge();
  __device__ bool combines() const;
  __device__ bool admit(bool runs);
  __device__ void prepare_space(bool runs);
  __device__ bool execute(bool runs);
  __device__ void compose(bool done);
  __device__ bool carries_value() const;
  __device__ void compose_frames(bool waits, uint32_t bound);
  __device__ void compose_runs(bool waits, uint32_t bound);
  __device__ uint32_t compose_own(uint8_t* out);
  __device__ uint32_t finish_own(uint8_t* out, uint32_t payload);
  __device__ void send(const gpu::LaneRanges& places, bool composed, uint32_t size);
  // Words of the arena that a reply frame takes.
  __device__ uint32_t reply_words(uint32_t payload) const {
    return (net::reply_frame_size(packet_, protocol::kUdpHeaderSize + payload) + 15) / 16;
  }

  const PacketJob& job_;
  WarpStage& stage_;
  Tally& tally_;
  ReplyArena arena_;
  store::ThreadContext thread_;
  request::Context context_;
  // Of the lane's packet:
  Bytes frame_ = {};
  uint32_t frame_offset_ = 0;
  net::Packet packet_ = {};
  protocol::UdpHeader udp_header_;
  request::RequestState state_;
  protocol::Result answer_;
  PacketResult result_ = {};
  bool combined_ = false;           // another SET of its key is applied instead: see is_combined()
  bool changes_ = false;            // may change the store
  uint32_t reserved_ = 0;           // words of the arena, reserved for its reply
  uint8_t* value_place_ = nullptr;  // in the staging buffer
};

}  // namespace warpcache::engine::cuda

#include "engine/cuda/packets/general_packets_input.cuh"
#include "engine/cuda/packets/general_packets_reply.cuh"
