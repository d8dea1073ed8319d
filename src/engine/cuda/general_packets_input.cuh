// SPDX-License-Identifier: Apache-2.0
//
// The first half: open, admit, execute. Part of general_packets.cuh.
#pragma once

#include "engine/cuda/general_packets.cuh"

namespace warpcache::engine::cuda {

// Headers, then the one command that most packets have. Called by one lane; false: `result_` says
// why not.
__device__ inline bool GeneralPackets::open() {
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
__device__ inline bool GeneralPackets::judge() {
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

__device__ inline uint32_t GeneralPackets::value_ahead() const {
  const wire::Request& request = state_.request;
  const store::Found found = context_.store.find(request.hash, context_.key(request));
  return found ? found.item->value_size : 0;
}

// Whether a plain set leaves it to another one of the job to take effect. That one may have to come
// again, and does so before the batch is answered. Called by one lane.
__device__ inline bool GeneralPackets::leaves_to_another() const {
  const wire::Request& request = state_.request;
  if (request.op != wire::Op::kSet || request.protocol != wire::Protocol::kText ||
      (request.bits & wire::kCasCompare) != 0) {
    return false;
  }
  const Bytes key = context_.key(request);
  const uint32_t offset = frame_offset_ + static_cast<uint32_t>(key.data - frame_.data);
  const uint64_t mine = claim_of(job_.claim_round, request.key_size, offset);
  auto* const word = reinterpret_cast<unsigned long long*>(job_.claims + request.hash % kClaims);
  uint64_t seen = load_relaxed(job_.claims + request.hash % kClaims);
  if (claim_round(seen) != job_.claim_round) {
    const uint64_t before = atomicCAS(word, seen, mine);
    if (before == seen) return false;
    seen = before;
  }
  return claim_round(seen) == job_.claim_round && claim_key_size(seen) == request.key_size &&
         same_bytes(job_.input + claim_key_offset(seen), key);
}

// Reads the input past the caches: the host writes there again and again.
__device__ inline bool GeneralPackets::same_bytes(const uint8_t* from, Bytes key) {
  const uint32_t skip = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) % 4);
  const auto* words = reinterpret_cast<const volatile uint32_t*>(from - skip);
  const auto size = static_cast<uint32_t>(key.size);
  for (uint32_t i = 0; i < (skip + size + 3) / 4; ++i) {
    const uint32_t word = words[i];
    for (uint32_t b = 0; b < 4; ++b) {
      const uint32_t at = 4 * i + b - skip;  // beyond `size` in front of the first
      if (at < size && key.data[at] != static_cast<uint8_t>(word >> (8 * b))) return false;
    }
  }
  return true;
}

// What has changed the store must have its reply sent.
__device__ inline bool GeneralPackets::admit(bool runs) {
  const bool wants = runs && promised_ != 0;
  const uint32_t words = warp_last(warp_sum_to(wants ? promised_ : 0));
  if (words == 0) return runs;
  uint32_t fits = 0;
  if (lane_id() == 0) fits = arena_.promise(words) ? 1 : 0;
  fits = __shfl_sync(kAllLanes, fits, 0);
  if (fits != 0 || !wants) return runs;
  promised_ = 0;
  result_ = PacketResult::not_done(PacketState::kNoReplySpace);
  return false;
}

__device__ inline void GeneralPackets::make_index_room(bool runs) {
  const bool adds = runs && changes_ && !yields_ && state_.request.op != wire::Op::kDelete;
  expected_items_ = __popc(__ballot_sync(kAllLanes, adds));
  if (lane_id() == 0 && expected_items_ != 0) {
    store::reserve_growth(context_.store.core, thread_, expected_items_);
  }
  __syncwarp();
}

// Space for the items of plain stores, all at once: a lock that each lane takes for itself is taken
// 32 times.
__device__ inline void GeneralPackets::prepare_space(bool runs) {
  const wire::Request& request = state_.request;
  const store::Core& core = context_.store.core;
  const bool stores = runs && changes_ && !yields_ &&
                      (request.op == wire::Op::kSet || request.op == wire::Op::kAdd ||
                       request.op == wire::Op::kReplace);
  const uint32_t expiry = stores ? request::expiry_second(request.exptime, context_.clock) : 0;
  const bool wants = stores && store::ttl_class(*core.shared, expiry) == 0;
  const uint32_t bytes = wants ? static_cast<uint32_t>(store::item_footprint(
                                     request.key_size, uint64_t{request.value_size}))
                               : 0;
  const uint32_t end = warp_sum_to(bytes);
  const uint32_t total = warp_last(end);
  if (total == 0 || total > core.plain_size_max()) return;
  uint64_t run = 0;
  if (lane_id() == 0) run = reinterpret_cast<uint64_t>(store::take_run(core, thread_, total));
  run = __shfl_sync(kAllLanes, run, 0);
  if (run == 0) return;
  if (wants) {
    uint8_t* const place = reinterpret_cast<uint8_t*>(run) + end - bytes;
    thread_.prepared = store::detail::init_item(place, request.key_size, request.value_size, expiry,
                                                store::Layout::kPlain);
    core.segment(core.segment_of(thread_.prepared)).note_expiry(expiry);
  }
  __syncwarp();
  if (lane_id() == 0) spin_unlock(&core.lanes[thread_.lane].lock);
  __syncwarp();
}

// Returns whether there is something to answer.
__device__ inline bool GeneralPackets::execute(bool runs) {
  if (__any_sync(kAllLanes, runs && changes_)) {
    uint64_t batch = 0;
    if (lane_id() == 0) batch = fetch_add(&context_.store.core.shared->cas_batch, 1) + 1;
    batch = __shfl_sync(kAllLanes, batch, 0);
    thread_.cas_next = batch << store::StoreRef::kCasIndexBits | lane_id();
    thread_.cas_end = thread_.cas_next + 1;
  }
  prepare_space(runs);
  bool done = false;
  if (runs && yields_) {
    answer_ = {};
    answer_.outcome = wire::Outcome::kStored;
    context_.counters->add(request::Counter::kCmdSet);
    thread_.counters->add(store::StoreCounter::kTotalItems, 1);
    done = true;
  } else if (runs) {
    done = request::execute(context_, state_, answer_) == Status::kOk;
    if (!done) {
      result_ = PacketResult::not_done(PacketState::kDeferred);
      const uint32_t wanted = max(state_.bytes_wanted, 1u);
      atomicMax(&tally_.room_wanted, wanted);
      atomicAdd(&tally_.room_missing, wanted);
    }
  }
  if (thread_.prepared != nullptr) {
    store::Allocation unused = {
        thread_.prepared, static_cast<uint32_t>(store::item_footprint(*thread_.prepared)), false};
    context_.store.abandon(thread_, unused);
    thread_.prepared = nullptr;
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
