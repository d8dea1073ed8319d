// SPDX-License-Identifier: Apache-2.0
//
// The single-key fast path for SETs (protocol/single_key/set.h): one lane each, for up to 32 frames
// in the staging buffer. What can be allocated for all of them in one step is: ways in the index,
// CAS ids, item memory, reply space. Then each lane locks its pair and swaps one slot.
//
// Device code.
#pragma once

#include <cstdint>

#include "engine/cuda/packets/packet_writes.cuh"
#include "protocol/single_key/set.h"

namespace warpcache::engine::cuda {

// One chunk, as seen by one lane. Every function is called by the whole warp unless it says
// otherwise.
class SingleKeySets {
 public:
  // REQUIRES: the block is in its epoch, as the reader of this block.
  __device__ SingleKeySets(const BlockResources& resources, const PacketJob& job, WarpStage& stage,
                           Tally& tally)
      : resources_(resources), store_{resources.core}, job_(job), stage_(stage), tally_(tally) {}

  // Runs this lane's `frame` if it has one (`here`) and it is a single-key SET; it is at `offset`
  // of the job's input. Returns true if it was answered; then `result` is set.
  __device__ bool run(Bytes frame, uint32_t offset, bool here, PacketResult& result);

 private:
  __device__ void open(uint32_t size);
  __device__ bool is_usual() const;
  __device__ bool reserve(uint32_t replies) const;
  __device__ void publish();
  __device__ void write_item(store::Item& item) const;
  __device__ protocol::SingleKeyBytes key() const {
    return {{frame_ + protocol::kSingleKeyOffset, request_.key_size}};
  }

  const BlockResources& resources_;
  const store::StoreRef store_;
  const PacketJob& job_;
  WarpStage& stage_;
  Tally& tally_;
  store::ThreadContext thread_;  // set when a lane has a SET: it takes reads that others need not
  // Of the lane's packet:
  const uint8_t* frame_ = nullptr;
  protocol::SingleKeySet request_;
  uint64_t hash_ = 0;
};

// Called by one lane.
__device__ inline void SingleKeySets::open(uint32_t size) {
  if (!may_be_single_key(job_, frame_)) return;
  request_ = protocol::parse_single_key_set(frame_, size, job_.udp_port);
  const bool fits = protocol::item_fits(packet_limits(job_), request_.key_size,
                                        request_.client_flags, request_.value_size);
  if (!fits) request_ = {};
}

// This lane's request is for this path. No lane's is where the items do not fit into one segment
// together, or where the general path has to answer that there is no space.
__device__ inline bool SingleKeySets::is_usual() const {
  const bool mine = request_.key_size != 0;
  const uint32_t bytes = footprint_of(mine, request_.key_size, request_.value_size);
  const uint32_t all = gpu::warp_last(gpu::warp_sum_to(bytes));
  const store::Core& core = store_.core;
  return mine && all <= core.plain_size_max() && !job_.out_of_memory &&
         !(core.shared->keep_all && store::is_crowded(core));
}

__device__ inline bool SingleKeySets::reserve(uint32_t replies) const {
  uint32_t fits = 0;
  if (gpu::lane_id() == 0) fits = ReplyArena(job_).reserve(replies * kShortReplyWords) ? 1 : 0;
  return __shfl_sync(gpu::kAllLanes, fits, 0) != 0;
}

// Not inlined: with the state in an object on the stack, fewer registers are spilled.
__device__ __noinline__ inline bool SingleKeySets::run(Bytes frame, uint32_t offset, bool here,
                                                       PacketResult& result) {
  frame_ = frame.data;
  if (here) open(static_cast<uint32_t>(frame.size));
  if (!__any_sync(gpu::kAllLanes, request_.key_size != 0)) return false;
  const bool mine = is_usual();
  const uint32_t count = __popc(__ballot_sync(gpu::kAllLanes, mine));
  if (count == 0) return false;
  // A request that has been applied must be answered.
  const bool beside = mine && fits_beside(job_, frame, net::kEthernetFrameMin);
  const uint32_t in_arena = __popc(__ballot_sync(gpu::kAllLanes, mine && !beside));
  if (in_arena != 0 && !reserve(in_arena)) {
    if (mine) result = PacketResult::not_done(PacketState::kNoReplySpace);
    return mine;
  }
  const store::Core& core = store_.core;
  thread_ = thread_of_block(resources_, job_);
  if (mine) hash_ = store_.hash(key());
  const bool combined =
      mine && is_combined(job_, hash_, key(), offset + protocol::kSingleKeyOffset);
  const bool stores = mine && !combined;
  const int expected = expect_items(core, thread_, stores);
  take_cas_ids(core, thread_);
  prepare_items(core, thread_, stores, request_.key_size, request_.value_size, 0, 0);
  const bool stored = stores && thread_.prepared != nullptr;
  if (stored) publish();
  settle_items(core, thread_, expected);
  if (stores && !stored) {
    result = defer_packet(tally_, static_cast<uint32_t>(store::item_bytes(
                                      request_.key_size, uint64_t{request_.value_size})));
  }
  const uint32_t combined_count = __popc(__ballot_sync(gpu::kAllLanes, combined));
  const uint32_t done = __popc(__ballot_sync(gpu::kAllLanes, combined || stored));
  if (gpu::lane_id() == 0) {
    if (done != 0) tally_.counters.add(request::Counter::kCmdSet, done);
    if (combined_count != 0)
      thread_.counters->add(store::StoreCounter::kTotalItems, combined_count);
  }
  const auto compose = [this](uint8_t* out) {
    return protocol::compose_single_key_stored(frame_, request_, out);
  };
  send_short_replies(job_, stage_, frame, offset, combined || stored, in_arena, compose, result);
  return mine;
}

// Called by the lanes that have item memory. Under the lock nothing that the look-up reads changes,
// so it reads in the fewest steps.
__device__ inline void SingleKeySets::publish() {
  store::Item& item = *thread_.prepared;
  thread_.prepared = nullptr;
  write_item(item);
  store::Allocation allocation = {&item, static_cast<uint32_t>(store::item_footprint(item)), true};
  request::Context context;
  context.store = store_;
  context.thread = &thread_;
  context.counters = &tally_.counters;
  context.clock = job_.clock;
  context.cas_enabled = job_.cas_enabled;
  request::publish_plain_set<PastL1>(context, hash_, key(), request_.client_flags, allocation);
}

// Writes key, value and padding. Called by one lane.
__device__ inline void SingleKeySets::write_item(store::Item& item) const {
  const uint8_t* const key_bytes = frame_ + protocol::kSingleKeyOffset;
  const uint8_t* const value_bytes = frame_ + request_.value_offset - request_.key_size;
  const uint32_t size = request_.key_size + request_.value_size;
  auto* const out = reinterpret_cast<uint4*>(item.key_data());
  for (uint32_t at = 0; at < size; at += 16) {
    uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t byte = min(at + i, size - 1);
      const uint32_t read = byte < request_.key_size ? key_bytes[byte] : value_bytes[byte];
      words[i / 4] |= read << (8 * (i % 4));
    }
    out[at / 16] = {words[0], words[1], words[2], words[3]};
  }
}

}  // namespace warpcache::engine::cuda
