// SPDX-License-Identifier: Apache-2.0
//
// The first half: open, admit, execute. Part of general_packets.cuh.
#pragma once

#include "engine/cuda/packets/general_packets.cuh"

namespace warpcache::engine::cuda {

// Reads the headers and parses the command; most packets have one command. False: `result_` says
// why not. Called by one lane.
__device__ inline bool GeneralPackets::open() {
  const net::PacketVerdict verdict =
      net::parse_packet_without_extensions(frame_, job_.udp_port, packet_);
  result_ = verdict == net::PacketVerdict::kExtensions ? PacketResult::not_done(PacketState::kHost)
                                                       : PacketResult::dropped(verdict);
  if (verdict != net::PacketVerdict::kRequest) return false;
  const Bytes datagram = {frame_.data + packet_.payload_offset, packet_.payload_size};
  if (protocol::parse_udp_header(datagram, udp_header_) != protocol::UdpVerdict::kRequest)
    return false;
  const Bytes payload = datagram.from(protocol::kUdpHeaderSize);
  protocol::FrameState state = {};
  protocol::Frame frames[2];
  const protocol::FrameResult framed =
      protocol::frame_datagram(state, packet_limits(job_), payload,
                               static_cast<uint32_t>(payload.data - stage_.input), 0, frames, 2);
  if (framed.count == 0) {
    // The first bytes of a binary header: a request without an answer, as on the host.
    result_ = PacketResult::done(0, 0);
    return false;
  }
  result_ = PacketResult::not_done(PacketState::kHost);
  if (framed.count != 1 || framed.end != protocol::FrameEnd::kClose) return false;
  request::decode(context_, frames[0], state_);
  return true;
}

// Decides whether the request runs on the device, and whether it may change the store. Called by
// one lane.
__device__ inline bool GeneralPackets::judge() {
  const protocol::Request& request = state_.request;
  if (request::is_administrative(request.op)) return false;
  if (!request::acts_on_key(request.op) || request.status != Status::kOk) return true;
  // A meta get may win the token of a stale item.
  constexpr uint32_t kWrites = protocol::kTouchBit | protocol::kVivify;
  changes_ = request.op != protocol::Op::kGet || request.protocol == protocol::Protocol::kMeta ||
             (request.bits & kWrites) != 0;
  if (!changes_) return true;
  const uint32_t ends = protocol::reply_bound_max(request);
  uint32_t value = 0;
  if (request.op == protocol::Op::kGet) {
    const store::Found found = context_.store.find(request.hash, context_.key(request));
    if (found && found.item->chained()) return false;
    if (found) value = found.item->value_size;
  }
  const bool is_long = ends + value > protocol::kUdpPayloadMax;
  if (is_long && ends > kLongEndsMax) return false;
  reserved_ = is_long ? run_words(run_of(packet_, ends + value)) : reply_words(ends + value);
  return true;
}

// It is a plain SET, and another SET of its key is applied. Called by one lane.
__device__ inline bool GeneralPackets::combines() const {
  const protocol::Request& request = state_.request;
  if (request.op != protocol::Op::kSet || request.protocol != protocol::Protocol::kText ||
      (request.bits & protocol::kCasCompare) != 0) {
    return false;
  }
  const Bytes key = context_.key(request);
  const uint32_t offset = frame_offset_ + static_cast<uint32_t>(key.data - frame_.data);
  return is_combined(job_, request.hash, key, offset);
}

// A request that has changed the store must be answered, so its reply space is reserved first.
__device__ inline bool GeneralPackets::admit(bool runs) {
  const bool wants = runs && reserved_ != 0;
  const uint32_t words = gpu::warp_last(gpu::warp_sum_to(wants ? reserved_ : 0));
  if (words == 0) return runs;
  uint32_t fits = 0;
  if (gpu::lane_id() == 0) fits = arena_.reserve(words) ? 1 : 0;
  fits = __shfl_sync(gpu::kAllLanes, fits, 0);
  if (fits != 0 || !wants) return runs;
  reserved_ = 0;
  result_ = PacketResult::not_done(PacketState::kNoReplySpace);
  return false;
}

// Allocates the items of plain stores.
__device__ inline void GeneralPackets::prepare_space(bool runs) {
  const protocol::Request& request = state_.request;
  const bool stores = runs && changes_ && !combined_ &&
                      (request.op == protocol::Op::kSet || request.op == protocol::Op::kAdd ||
                       request.op == protocol::Op::kReplace);
  const uint32_t expiry = stores ? request::expiry_second(request.exptime, context_.clock) : 0;
  const store::Core& core = context_.store.core;
  const uint32_t expiry_class = stores ? store::expiry_class(*core.shared, expiry) : 0;
  const bool wants =
      stores && footprint_of(true, request.key_size, request.value_size) <= core.plain_size_max();
  prepare_items(core, thread_, wants, request.key_size, request.value_size, expiry, expiry_class);
}

// Returns whether there is something to answer.
__device__ inline bool GeneralPackets::execute(bool runs) {
  const store::Core& core = context_.store.core;
  const bool adds = runs && changes_ && !combined_ && state_.request.op != protocol::Op::kDelete;
  const int expected = expect_items(core, thread_, adds);
  if (__any_sync(gpu::kAllLanes, runs && changes_)) take_cas_ids(core, thread_);
  prepare_space(runs);
  bool done = false;
  if (runs && combined_) {
    answer_ = {};
    answer_.outcome = protocol::Outcome::kStored;
    context_.counters->add(request::Counter::kCmdSet);
    thread_.counters->add(store::StoreCounter::kTotalItems, 1);
    done = true;
  } else if (runs) {
    done = request::execute(context_, state_, answer_) == Status::kOk;
    if (!done) result_ = defer_packet(tally_, state_.bytes_wanted);
  }
  abandon_prepared(context_.store, thread_);
  settle_items(core, thread_, expected);
  return done;
}

}  // namespace warpcache::engine::cuda
