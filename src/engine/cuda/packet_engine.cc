// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/packet_engine.h"

#include <algorithm>

#include "engine/replies.h"
#include "wire/udp_frame.h"

namespace warpcache::engine::cuda {

namespace {

uint32_t aligned(uint32_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace

std::string PacketEngine::create(const PacketEngineConfig& config, CudaStore& store,
                                 DeviceFaults& faults, std::unique_ptr<PacketEngine>* engine) {
  std::unique_ptr<PacketEngine> made(new PacketEngine(config, store, faults));
  std::string failure = made->start();
  if (failure.empty()) *engine = std::move(made);
  return failure;
}

std::string PacketEngine::start() {
  const auto device = CudaMemory::Place::kDevice;
  const auto host = CudaMemory::Place::kHost;
  const bool taken = input_copy_.allocate(device, config_.input_bytes) &&
                     packets_.allocate(host, sizeof(PacketSlot) * kPacketsMax) &&
                     reply_copy_.allocate(device, config_.reply_bytes);
  if (!taken) return "there is too little memory for the buffers of the packets' engine";
  origin_.reserve(kPacketsMax);
  return runner_.start();
}

bool PacketEngine::run(const PacketBatch& batch) {
  WC_ASSERT(batch.count <= kPacketsMax);
  arena_used_ = 0;
  out_of_memory_ = false;
  origin_.resize(batch.count);
  for (uint32_t i = 0; i < batch.count; ++i) origin_[i] = i;
  for (uint32_t defers = 0; !origin_.empty();) {
    if (!run_round(batch)) return false;
    take_results(batch);
    if (room_wanted_ == 0) {
      defers = 0;
      out_of_memory_ = false;
      continue;
    }
    const Status room = room_wanted_ == 1 ? Status::kOk : store_.make_room(room_wanted_);
    out_of_memory_ = room != Status::kOk || ++defers > kMakeRoomRoundsMax;
  }
  return true;
}

void PacketEngine::fill_job(const PacketBatch& batch, Job& job) const {
  job.input = batch.input;
  job.packets = packets_.as<PacketSlot>();
  job.reply_out = batch.replies + arena_used_;
  job.input_copy = input_copy_.data();
  job.reply_copy = reply_copy_.data() + arena_used_;
  job.reply_size = std::min(batch.reply_bytes, config_.reply_bytes) - arena_used_;
  job.value_size_max = wire::kUdpPayloadMax;
  job.item_size_max = config_.item_size_max;
  job.clock = store_.clock();
  job.limits.item_size_max = config_.item_size_max;
  job.limits.inline_body_max = UINT32_MAX;
  job.limits.cas_enabled = config_.cas_enabled;
  job.udp_port = config_.udp_port;
  job.cas_enabled = config_.cas_enabled;
  job.out_of_memory = out_of_memory_;
}

bool PacketEngine::run_round(const PacketBatch& batch) {
  const auto count = static_cast<uint32_t>(origin_.size());
  for (uint32_t i = 0; i < count; ++i) packets_.as<PacketSlot>()[i] = batch.slots[origin_[i]];
  Job& job = runner_.next();
  fill_job(batch, job);
  for (uint32_t at = 0; at < count; at += kSliceFrames) {
    runner_.add_group(at, std::min(kSliceFrames, count - at));
  }
  runner_.launch();
  return runner_.wait();
}

// Keeps in origin_ what has to be run again.
void PacketEngine::take_results(const PacketBatch& batch) {
  const FrameReply* replies = runner_.replies();
  const auto count = static_cast<uint32_t>(origin_.size());
  const uint32_t begin = arena_used_;
  uint32_t left = 0;
  uint32_t used = 0;
  room_wanted_ = 0;
  for (uint32_t i = 0; i < count; ++i) {
    FrameReply reply = replies[i];
    const uint32_t packet = origin_[i];
    if (reply.state == FrameState::kDeferred) {
      room_wanted_ = std::max<uint64_t>(room_wanted_, std::max(reply.bytes, 1u));
      origin_[left++] = packet;
    } else if (reply.state == FrameState::kNoReplySpace) {
      // The arena does not grow: the batch was too large for it.
      reply.state = FrameState::kHost;
      batch.results[packet] = reply;
    } else {
      used = std::max(used, reply.offset + reply.size);
      reply.offset += begin;
      batch.results[packet] = reply;
    }
  }
  arena_used_ += aligned(used);
  origin_.resize(left);
  runner_.take_counts(counters_);
}

}  // namespace warpcache::engine::cuda
