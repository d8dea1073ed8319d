// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/packets/packet_runner.h"

#include <algorithm>
#include <cstring>

#include "engine/replies.h"
#include "protocol/framing/udp_frame.h"

namespace warpcache::engine::cuda {

namespace {

// Bytes of a frame, as far as a look at a few of them says.
uint32_t usual_frame_bytes(const net::PacketBurst& batch) {
  if (batch.slots == nullptr) return batch.slot_bytes;
  if (batch.input_bytes != 0) return batch.input_bytes / batch.count;
  return (batch.slots[0].size + batch.slots[batch.count / 2].size +
          batch.slots[batch.count - 1].size) /
         3;
}

// Packets that a warp takes at a time. Of long frames, such as multigets, as many as the warp's
// staging buffer holds: more would wait for these, and other warps are free.
uint8_t chunk_of(const net::PacketBurst& batch) {
  constexpr uint32_t kLongFrame = 320;
  const uint32_t bytes = usual_frame_bytes(batch);
  const uint32_t packets =
      bytes <= kLongFrame ? kChunkPackets : std::clamp(kStageBytes / bytes, 4u, kChunkPackets);
  return static_cast<uint8_t>(packets);
}

}  // namespace

std::string PacketRunner::create(const PacketRunnerConfig& config, store::CudaStore& store,
                                 gpu::DeviceFaults& faults, request::Counters& counters,
                                 std::unique_ptr<PacketRunner>* runner) {
  std::unique_ptr<PacketRunner> made(new PacketRunner(config, store, faults, counters));
  std::string failure = made->start();
  if (failure.empty()) *runner = std::move(made);
  return failure;
}

std::string PacketRunner::start() {
  const auto device = gpu::CudaMemory::Place::kDevice;
  const auto host = gpu::CudaMemory::Place::kHost;
  bool taken = combine_table_.allocate(device, sizeof(uint64_t) * kCombineEntries) &&
               reply_end_.allocate(host, sizeof(uint32_t)) &&
               again_slots_.allocate(host, sizeof(PacketSlot) * kPacketsMax) &&
               again_.allocate(host, sizeof(PacketResult) * kPacketsMax);
  if (config_.copied_packets_min != 0) {
    taken = taken && input_copy_.allocate(device, config_.copied_input_bytes) &&
            reply_copy_.allocate(device, config_.copied_reply_bytes);
  }
  if (!taken) return "there is too little memory for the buffers of the Ethernet frames' bursts";
  if (config_.jobs.stays() && !copies_.create(gpu::CudaStream::Priority::kNormal)) {
    return "the GPU gives no stream";
  }
  origin_.reserve(kPacketsMax);
  return runner_.start();
}

protocol::FrameLimits PacketRunner::limits() const {
  return {config_.item_size_max, UINT32_MAX, config_.cas_enabled, config_.protocol};
}

bool PacketRunner::run(const net::PacketBurst& batch) {
  begin(batch);
  return finish();
}

void PacketRunner::take(const net::PacketBurst& batch) {
  WC_ASSERT(stage_ == Stage::kNone);
  WC_ASSERT(batch.count <= kPacketsMax && batch.reply_bytes <= PacketResult::kArenaMax);
  WC_ASSERT(batch.frame_room == 0 || batch.reply_bytes <= PacketResult::kBesideArenaMax);
  batch_ = batch;
  reply_used_ = 0;
  has_host_packets_ = false;
  out_of_memory_ = false;
  stage_ = batch.count == 0 ? Stage::kEnded : Stage::kKernel;
}

bool PacketRunner::begin_for_peer(const net::PacketBurst& batch, net::PeerDoorbell* doorbell) {
  WC_ASSERT(batch.slots == nullptr && batch.count > 1 && batch.input_bytes == 0);
  if (changes_.on()) return false;  // what the peer will write is not known
  take(batch);
  copied_ = false;
  (void)prepare_job(batch_);
  if (runner_.prepare(doorbell)) return true;
  stage_ = Stage::kNone;
  return false;
}

void PacketRunner::begin(const net::PacketBurst& batch) {
  take(batch);
  if (stage_ == Stage::kEnded) return;
  if (changes_.on()) changes_.begin(batch, config_.udp_port, limits());
  copied_ = is_copied(batch);
  if (copied_) {
    begin_copied();
  } else {
    begin_in_place(batch_);
  }
}

bool PacketRunner::ended() {
  if (stage_ == Stage::kKernel && runner_.ended()) {
    stage_ = Stage::kEnded;
    if (!faults_.failed()) reply_used_ = *reply_end_.as<uint32_t>();
    if (copied_ && reply_used_ != 0) begin_copying_back();
  }
  if (stage_ == Stage::kCopyingBack && copies_ended()) stage_ = Stage::kEnded;
  return stage_ == Stage::kEnded || faults_.failed();
}

bool PacketRunner::finish() {
  while (!ended()) {
  }
  const bool done = finish_rounds();
  if (changes_.on()) changes_.end();
  return done;
}

bool PacketRunner::finish_rounds() {
  stage_ = Stage::kNone;
  if (faults_.failed()) return false;
  if (batch_.count == 0) return true;
  runner_.take_counts(counters_);
  has_host_packets_ = runner_.result().undone != 0;
  return !has_host_packets_ || run_again();
}

bool PacketRunner::is_copied(const net::PacketBurst& batch) const {
  return !batch.on_device && config_.copied_packets_min != 0 &&
         batch.count >= config_.copied_packets_min && batch.input_bytes != 0 &&
         batch.input_bytes <= config_.copied_input_bytes &&
         batch.reply_bytes <= config_.copied_reply_bytes;
}

PacketJob& PacketRunner::prepare_job(const net::PacketBurst& batch) {
  PacketJob& job = runner_.next();
  job.item_size_max = config_.item_size_max;
  job.clock = store_.clock();
  job.cas_enabled = config_.cas_enabled;
  job.out_of_memory = out_of_memory_;
  job.input = batch.input;
  job.slots = batch.slots;
  job.slot_bytes = batch.slot_bytes;
  job.frame_room = batch.frame_room;
  if (batch.count == 1 && batch.slots != nullptr && batch.slots[0].offset == 0) {
    job.slots = nullptr;
    job.slot_bytes = batch.slots[0].size;
  }
  if (config_.jobs.stays()) bring_with_job(batch, job);
  job.count = batch.count;
  job.chunk = chunk_of(batch);
  job.shares = (batch.count + job.chunk - 1) / job.chunk;
  job.packets = batch.results;
  job.reply_out = batch.replies;
  job.reply_begin = reply_used_;
  job.reply_size = batch.reply_bytes;
  job.reply_end = reply_end_.as<uint32_t>();
  job.udp_port = config_.udp_port;
  job.protocol = config_.protocol;
  job.combine_table = combine_table_.as<uint64_t>();
  job.combine_round = next_combine_round();
  return job;
}

// A kernel that is there before the job need not ask for what the job brings.
void PacketRunner::bring_with_job(const net::PacketBurst& batch, PacketJob& job) {
  if (!batch.on_device && batch.input_bytes != 0 && batch.input_bytes <= PacketJob::kInlineMax) {
    job.inline_bytes = batch.input_bytes;
    std::memcpy(job.inline_data, batch.input, batch.input_bytes);
  } else if (job.slots != nullptr && batch.count <= PacketJob::kInlineSlots) {
    job.slots_inline = true;
    std::memcpy(job.inline_data, batch.slots, batch.count * sizeof(PacketSlot));
    job.slots = nullptr;
  }
}

// Entries of an earlier job with the same number must not be found.
uint32_t PacketRunner::next_combine_round() {
  if (combine_round_ == kCombineRoundMax) {
    const cudaError_t error =
        cudaMemsetAsync(combine_table_.data(), 0, combine_table_.bytes(), copies());
    (void)(faults_.check(error, "clearing the combine table") && finish_copies());
    combine_round_ = 0;
  }
  return ++combine_round_;
}

void PacketRunner::begin_in_place(const net::PacketBurst& batch) {
  (void)prepare_job(batch);
  runner_.launch();
}

// Streams share few queues to the GPU, of which others for copies would take half. Persistent
// kernels occupy theirs.
cudaStream_t PacketRunner::copies() const {
  return config_.jobs.stays() ? copies_.get() : runner_.stream();
}

// Frames in, kernel, replies out. The driver orders the first two, unless the kernel is persistent.
void PacketRunner::begin_copied() {
  PacketJob& job = prepare_job(batch_);
  const cudaError_t in = cudaMemcpyAsync(input_copy_.data(), batch_.input, batch_.input_bytes,
                                         cudaMemcpyHostToDevice, copies());
  if (!faults_.check(in, "frames to the GPU")) return;
  if (config_.jobs.stays() && !finish_copies()) return;
  job.input = input_copy_.data();
  job.frame_room = 0;
  job.reply_out = reply_copy_.data();
  runner_.launch();
}

void PacketRunner::begin_copying_back() {
  const cudaError_t out = cudaMemcpyAsync(batch_.replies, reply_copy_.data(), reply_used_,
                                          cudaMemcpyDeviceToHost, copies());
  if (faults_.check(out, "replies from the GPU")) stage_ = Stage::kCopyingBack;
}

bool PacketRunner::copies_ended() {
  const cudaError_t state = cudaStreamQuery(copies());
  if (state == cudaErrorNotReady) return false;
  (void)faults_.check(state, "copying");
  return true;
}

bool PacketRunner::finish_copies() {
  while (!copies_ended()) {
  }
  return !faults_.failed();
}

// Runs the packets that earlier rounds have not done. They are few, and are not copied.
bool PacketRunner::run_again() {
  const JobResult& round = runner_.result();
  for (uint32_t defers = 0;;) {
    collect();
    if (origin_.empty()) return true;
    if (round.space_wanted > 1) {
      const Status reclaimed =
          runner_.store_alone().reclaim(round.space_wanted, round.space_missing);
      out_of_memory_ = reclaimed != Status::kOk;
    }
    if (round.space_wanted != 0 && ++defers > kReclaimRoundsMax) out_of_memory_ = true;
    net::PacketBurst again = batch_;
    again.slots = again_slots_.as<PacketSlot>();
    again.results = again_.as<PacketResult>();
    again.count = static_cast<uint32_t>(origin_.size());
    begin_in_place(again);
    if (!runner_.wait()) return false;
    reply_used_ = *reply_end_.as<uint32_t>();
    runner_.take_counts(counters_);
    const uint32_t settled = hand_back();
    if (settled != 0 || round.space_wanted == 0) {
      defers = 0;
      out_of_memory_ = false;
    }
    // The arena does not grow: a reply that does not fit into the rest of it will never fit.
    if (settled == 0 && round.space_wanted == 0) {
      for (const uint32_t packet : origin_) {
        if (batch_.results[packet].state() != PacketState::kNoReplySpace) continue;
        batch_.results[packet] = PacketResult::not_done(PacketState::kHost);
      }
    }
  }
}

// Collects the packets that run again.
void PacketRunner::collect() {
  origin_.clear();
  for (uint32_t i = 0; i < batch_.count; ++i) {
    const PacketState state = batch_.results[i].state();
    if (state != PacketState::kDeferred && state != PacketState::kNoReplySpace) continue;
    again_slots_.as<PacketSlot>()[origin_.size()] =
        batch_.slots != nullptr ? batch_.slots[i]
                                : PacketSlot{i * batch_.slot_bytes, batch_.slot_bytes};
    origin_.push_back(i);
  }
}

// Returns how many need not run again.
uint32_t PacketRunner::hand_back() {
  uint32_t settled = 0;
  for (size_t i = 0; i < origin_.size(); ++i) {
    const PacketResult result = again_.as<PacketResult>()[i];
    batch_.results[origin_[i]] = result;
    const PacketState state = result.state();
    if (state != PacketState::kDeferred && state != PacketState::kNoReplySpace) ++settled;
  }
  return settled;
}

}  // namespace warpcache::engine::cuda
