// SPDX-License-Identifier: Apache-2.0
//
// The first half of a chunk: stage, open, admit, execute. Part of packet_warp.cuh.
#pragma once

#include "engine/cuda/packet_warp.cuh"

namespace warpcache::engine::cuda {

__device__ inline PacketSlot PacketWarp::load_slot(uint32_t number) const {
  if (job_.slots == nullptr) return {number * job_.slot_bytes, job_.slot_bytes};
  const volatile PacketSlot& slot = job_.slots[number];
  return {slot.offset, slot.size};
}

// `words` of this lane's frame, from word `from` of the input on, come to the stage.
__device__ inline void PacketWarp::bring_in(uint32_t words, uint32_t from) {
  const auto* source = reinterpret_cast<const uint4*>(job_.input);
  auto* target = reinterpret_cast<uint4*>(stage_.input);
  __syncwarp();
  LaneRanges(words).for_each(
      from, [source](uint32_t at) { return load_from_host(source + at); },
      [target](uint32_t at, const uint4& word) { target[at] = word; });
  __syncwarp();
}

// One turn of the chunk: `taken` says whether this lane's frame is in the stage.
__device__ inline void PacketWarp::work(bool taken) {
  changes_ = false;
  promised_ = 0;
  bool runs = taken && open() && judge();
  __syncwarp();
  runs = admit(runs);
  make_index_room(runs);
  const bool done = execute(runs);
  compose(done);
}

// Headers, then the one command that most packets have. Called by one lane; false: `result_` says
// why not.
__device__ inline bool PacketWarp::open() {
  const wire::PacketVerdict verdict = wire::parse_packet(frame_, job_.udp_port, packet_);
  result_ = PacketResult::dropped(verdict);
  if (verdict != wire::PacketVerdict::kRequest) return false;
  const Bytes datagram = {frame_.data + packet_.payload_offset, packet_.payload_size};
  if (wire::parse_udp_header(datagram, udp_header_) != wire::UdpVerdict::kRequest) return false;
  const Bytes payload = datagram.from(wire::kUdpHeaderSize);
  wire::FrameState state = {};
  wire::Frame frames[2];
  const wire::FrameResult framed =
      wire::frame_datagram(state, job_.limits, payload,
                           static_cast<uint32_t>(payload.data - stage_.input), 0, frames, 2);
  if (framed.count == 0) return false;
  result_ = PacketResult::not_done(PacketState::kHost);
  if (framed.count != 1 || framed.end != wire::FrameEnd::kClose) return false;
  request::decode(context_, frames[0], state_);
  return true;
}

// Whether the request is for the device, and whether it may change the store. Called by one lane.
__device__ inline bool PacketWarp::judge() {
  const wire::Request& request = state_.request;
  if (request::is_administrative(request.op)) return false;
  if (!request::acts_on_key(request.op) || request.status != Status::kOk) return true;
  // A meta get may win the token of a stale item.
  constexpr uint32_t kWrites = wire::kTouchBit | wire::kVivify;
  changes_ = request.op != wire::Op::kGet || request.protocol == wire::Protocol::kMeta ||
             (request.bits & kWrites) != 0;
  if (!changes_) return true;
  // A reply of several datagrams is the host's to cut.
  uint32_t bound = wire::reply_bound_max(request);
  if (request.op == wire::Op::kGet) bound += value_ahead();
  if (bound > wire::kUdpPayloadMax) return false;
  promised_ = reply_words(bound);
  return true;
}

__device__ inline uint32_t PacketWarp::value_ahead() const {
  const wire::Request& request = state_.request;
  const store::Found found = context_.store.find(request.hash, context_.key(request));
  return found ? found.item->value_size : 0;
}

// What has changed the store must have its reply sent. The upper half of the word counts what has
// been promised of the arena, in words, the lower half what has been taken; never is more taken
// than promised.
__device__ inline bool PacketWarp::admit(bool runs) {
  const bool wants = runs && promised_ != 0;
  const uint32_t words = warp_last(warp_sum_to(wants ? promised_ : 0));
  if (words == 0) return runs;
  uint32_t fits = 0;
  if (lane_id() == 0) {
    const uint64_t before = atomicAdd(reply_used(), uint64_t{words} << 32);
    fits = job_.reply_begin / 16 + (before >> 32) + words <= job_.reply_size / 16 ? 1 : 0;
    if (fits == 0) atomicAdd(reply_used(), ~(uint64_t{words} << 32) + 1);
  }
  fits = __shfl_sync(kAllLanes, fits, 0);
  if (fits != 0 || !wants) return runs;
  promised_ = 0;
  result_ = PacketResult::not_done(PacketState::kNoReplySpace);
  return false;
}

// Many warps add keys at once: what they may add is reported before, and the index grows until it
// has room for it. So no pair runs full while memory is free.
__device__ inline void PacketWarp::make_index_room(bool runs) {
  const bool adds = runs && changes_ && state_.request.op != wire::Op::kDelete;
  const int count = __popc(__ballot_sync(kAllLanes, adds));
  if (lane_id() == 0 && count != 0) {
    const store::Core& core = context_.store.core;
    thread_.new_items = count;
    store::settle_growth(core, thread_);
    uint32_t pairs = 0;
    while (store::is_crowded(core) && pairs != load_relaxed(&core.shared->pair_count)) {
      pairs = load_relaxed(&core.shared->pair_count);
      store::settle_growth(core, thread_);
    }
    thread_.new_items = 0;
  }
  expected_items_ = count;
  __syncwarp();
}

// Returns whether there is something to answer.
__device__ inline bool PacketWarp::execute(bool runs) {
  if (__any_sync(kAllLanes, runs && changes_)) {
    uint64_t batch = 0;
    if (lane_id() == 0) batch = fetch_add(&context_.store.core.shared->cas_batch, 1) + 1;
    batch = __shfl_sync(kAllLanes, batch, 0);
    thread_.cas_next = batch << store::StoreRef::kCasIndexBits | lane_id();
    thread_.cas_end = thread_.cas_next + 1;
  }
  bool done = false;
  if (runs) {
    done = request::execute(context_, state_, answer_) == Status::kOk;
    if (!done) {
      result_ = PacketResult::not_done(PacketState::kDeferred);
      const uint64_t bytes = state_.bytes_wanted < 0xffffffffu ? state_.bytes_wanted : 0xffffffffu;
      atomicMax(&tally_.room_wanted, max(static_cast<uint32_t>(bytes), 1u));
    }
  }
  __syncwarp();
  const int added = __reduce_add_sync(kAllLanes, thread_.new_items);
  thread_.new_items = added - expected_items_;
  if (lane_id() == 0 && thread_.new_items != 0) {
    store::settle_growth(context_.store.core, thread_);
  }
  thread_.new_items = 0;
  return done;
}

}  // namespace warpcache::engine::cuda
