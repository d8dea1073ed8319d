// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/messages/message_runner.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "engine/replies.h"
#include "protocol/framing/frame.h"
#include "request/stages.h"
#include "request/watched.h"

namespace warpcache::engine::cuda {

namespace {

bool is_done(FrameState state) { return state == FrameState::kDone || state == FrameState::kQuit; }

uint32_t aligned(uint32_t bytes) { return (bytes + 15) / 16 * 16; }

// Size of a buffer for a value with a separate buffer.
uint32_t large_bytes(const CudaEngineConfig& config) {
  return aligned(std::max(config.item_size_max, MessageRunner::kArenaValueMax) + 4096);
}

bool has_large_buffers(const CudaEngineConfig& config) {
  return config.item_size_max > MessageRunner::kArenaValueMax;
}

}  // namespace

MessageRunner::MessageRunner(EngineParts& parts, uint32_t number)
    : parts_(parts),
      config_(parts.config),
      faults_(parts.faults),
      admin_(parts.admin),
      changes_(parts.store.copies(), kFramesMax),
      first_pin_(number * kLargeBuffers + 1),
      runner_(parts.config.jobs, parts.store, parts.faults) {}

std::string MessageRunner::create(EngineParts& parts, uint32_t number,
                                  std::unique_ptr<MessageRunner>* runner) {
  std::unique_ptr<MessageRunner> made(new MessageRunner(parts, number));
  std::string failure = made->start();
  if (failure.empty()) *runner = std::move(made);
  return failure;
}

std::string MessageRunner::start() {
  const auto device = gpu::CudaMemory::Place::kDevice;
  const auto host = gpu::CudaMemory::Place::kHost;
  bool taken =
      frames_.allocate(host, sizeof(protocol::Frame) * kFramesMax) &&
      entries_.allocate(host, sizeof(EntryInfo) * kBatchEntriesMax) &&
      groups_.allocate(host, sizeof(Group) * kGroupsMax) &&
      frame_replies_.allocate(host, (sizeof(FrameReply) + sizeof(FrameReport)) * kFramesMax) &&
      reply_arena_.allocate(host, config_.reply_arena_bytes) &&
      reply_copy_.allocate(device, config_.reply_arena_bytes);
  const uint64_t bytes = large_bytes(config_);
  taken = taken && apart_.allocate(host, bytes);
  if (has_large_buffers(config_)) {
    for (gpu::CudaMemory& large : large_) taken = taken && large.allocate(host, bytes);
    taken = taken && large_copy_.allocate(device, bytes);
  }
  if (!taken) {
    return "there is too little memory for the buffers of the GPU's engines: fewer threads, or a "
           "smaller -m or -I";
  }
  origin_.reserve(kFramesMax);
  answers_.reserve(kFramesMax);
  frame_reports_.reserve(kFramesMax);
  for (auto* by_entry : {&entry_bytes_, &entry_admin_, &bodies_, &again_, &round_})
    by_entry->reserve(kBatchEntriesMax);
  return runner_.start();
}

uint64_t MessageRunner::device_bytes(const CudaEngineConfig& config) {
  return uint64_t{config.reply_arena_bytes} + (has_large_buffers(config) ? large_bytes(config) : 0);
}

// --- The batch

void MessageRunner::begin(Batch* batch) {
  WC_ASSERT(batch_ == nullptr && batch->entries.size() <= kBatchEntriesMax);
  batch_ = batch;
  if (changes_.on()) changes_.begin(*batch);
  begin_batch(*batch);
  begin_round();
}

void MessageRunner::begin_batch(Batch& batch) {
  batch.spans.clear();
  texts_.clear();
  again_.clear();
  answers_.assign(batch.frames.size(), {});
  entry_bytes_.assign(batch.entries.size(), 0);
  entry_admin_.assign(batch.entries.size(), 0);
  parts_.admin_budget.begin_batch();
  batch.stream_not_reached = false;
  bodies_.assign(batch.entries.size(), 0);
  batch.spans.reserve(batch.frames.size());
  arena_used_ = 0;
  defers_ = 0;
  out_of_memory_ = false;
  frame_reports_.clear();
  ask_watchers();
  for (uint32_t i = 0; i < batch.entries.size(); ++i) {
    BatchEntry& entry = batch.entries[i];
    entry.frames_done = entry.first_span = entry.span_count = 0;
    entry.long_reply = nullptr;
    entry.waits = false;
    authenticate(entry);
    if (entry.close || entry.frames_done == entry.frame_count) continue;
    if (WC_UNLIKELY(entry.user != 0)) {
      mark_denied(entry);
      if (next_of(i) == EntryNext::kFinished) continue;
    }
    again_.push_back(i);
  }
  finish_bodies();
}

void MessageRunner::ask_watchers() {
  wants_keys_ = admin_.wants_keys();
  reports_ = wants_keys_ && admin_.watches_requests();
  if (WC_UNLIKELY(reports_)) frame_reports_.resize(batch_->frames.size());
}

// Bodies that were received into reservations of the store.
void MessageRunner::finish_bodies() {
  bool has_bodies = false;
  for (uint32_t i : again_) {
    const BatchEntry& entry = batch_->entries[i];
    if (entry.reservation == 0 || entry.frames_done != 0) continue;
    bodies_[i] = parts_.bodies.complete(entry.reservation);
    has_bodies = true;
  }
  if (has_bodies) (void)parts_.bodies.settle();
}

protocol::Request MessageRunner::parse(uint32_t frame) {
  protocol::Request request;
  protocol::parse_request(batch_->frames[frame], batch_->input, request);
  return request;
}

// `reply` stays valid until the batch is sent.
void MessageRunner::answer_with(uint32_t frame, Bytes reply) {
  Answer& answer = answers_[frame];
  answer = {};
  answer.data = reply.data;
  answer.size = static_cast<uint32_t>(reply.size);
  answer.state = FrameState::kHost;
  answer.answered = true;
}

// --- Rounds

void MessageRunner::begin_round() {
  origin_.clear();
  job_ = &prepare_job(reply_arena_.data() + arena_used_, reply_copy_.data() + arena_used_,
                      config_.reply_arena_bytes - arena_used_);
  uint32_t group_first = 0;
  for (uint32_t index : again_) {
    const uint32_t before = static_cast<uint32_t>(origin_.size());
    if (before == kFramesMax) break;  // the others go into the next round
    add_entry(index);
    const uint32_t after = static_cast<uint32_t>(origin_.size());
    // A group holds whole entries, or one large entry.
    if (after - group_first > kSliceFrames) {
      if (before > group_first) add_group(group_first, before - group_first);
      group_first = before;
      if (after - before > kSliceFrames) {
        add_group(before, after - before);
        group_first = after;
      }
    }
  }
  const auto count = static_cast<uint32_t>(origin_.size());
  if (count > group_first) add_group(group_first, count - group_first);
  under_way_ = count != 0 && !faults_.failed();
  if (under_way_) {
    runner_.launch();
  } else {
    finish();
  }
}

void MessageRunner::add_group(uint32_t first, uint32_t count) {
  groups_.as<Group>()[job_->shares++] = {first, count};
}

// Adds the frames of an entry that have no answer yet.
void MessageRunner::add_entry(uint32_t index) {
  const BatchEntry& entry = batch_->entries[index];
  EntryInfo& info = entries_.as<EntryInfo>()[index];
  info = {};
  info.datagram = entry.datagram ? 1 : 0;
  auto* frames = frames_.as<protocol::Frame>();
  for (uint32_t i = entry.frames_done; i < entry.frame_count && origin_.size() < kFramesMax; ++i) {
    const uint32_t frame = entry.first_frame + i;
    if (answers_[frame].answered || answers_[frame].denied) continue;
    const auto place = static_cast<uint32_t>(origin_.size());
    if (i == 0 && bodies_[index] != 0) {
      info.reserved_frame = place;
      info.reservation = bodies_[index];
    }
    frames[place] = batch_->frames[frame];
    frames[place].entry = index;
    origin_.push_back(frame);
  }
}

FrameJob& MessageRunner::prepare_job(uint8_t* reply_out, uint8_t* reply_copy, uint32_t reply_size) {
  FrameJob& job = runner_.next();
  job.input = batch_->input;
  job.frames = frames_.as<protocol::Frame>();
  job.entries = entries_.as<EntryInfo>();
  job.groups = groups_.as<Group>();
  job.replies = frame_replies_.as<FrameReply>();
  job.reply_out = reply_out;
  job.input_copy = parts_.inputs.mirror_of(batch_->input);
  job.reply_copy = reply_copy;
  job.reply_size = reply_size;
  job.value_size_max = kArenaValueMax;
  job.item_size_max = config_.item_size_max;
  job.clock = parts_.store.clock();
  job.cas_enabled = config_.cas_enabled;
  job.out_of_memory = out_of_memory_;
  job.reports = reports_;
  return job;
}

Batch* MessageRunner::poll() {
  if (batch_ == nullptr) return nullptr;
  if (under_way_) {
    if (!runner_.ended()) return nullptr;
    if (!faults_.failed()) {
      arena_used_ += take_results(reply_arena_.data() + arena_used_);
      after_round();
    } else {
      under_way_ = false;
      finish();
    }
  }
  return under_way_ ? nullptr : std::exchange(batch_, nullptr);
}

// Reads the results of the job. Returns the bytes of the arena at `reply_out` that hold replies.
uint32_t MessageRunner::take_results(const uint8_t* reply_out) {
  const auto* replies = frame_replies_.as<FrameReply>();
  const bool reports = job_->reports;
  uint32_t used = 0;
  for (uint32_t i = 0; i < origin_.size(); ++i) {
    const FrameReply& reply = replies[i];
    Answer& answer = answers_[origin_[i]];
    answer.state = reply.state;
    answer.bytes = reply.bytes;
    if (!is_done(reply.state)) continue;
    answer.answered = true;
    answer.data = reply_out + reply.offset;
    answer.size = reply.size;
    used = std::max(used, reply.offset + reply.size);
    entry_bytes_[batch_->frames[origin_[i]].entry] += reply.size;
    if (WC_UNLIKELY(reports)) {
      answer.reported = true;
      frame_reports_[origin_[i]] = job_->reported()[i];
    }
  }
  runner_.take_counts(parts_.counters);
  return aligned(used);
}

// Decides for each entry of the round whether it needs another round.
void MessageRunner::after_round() {
  space_wanted_ = space_missing_ = 0;
  round_.swap(again_);
  again_.clear();
  for (uint32_t entry : round_) {
    if (next_of(entry) == EntryNext::kAgain) again_.push_back(entry);
  }
  if (space_wanted_ == 0) {
    defers_ = 0;
    out_of_memory_ = false;
  } else {
    const Status reclaimed = space_wanted_ == 1
                                 ? Status::kOk
                                 : runner_.store_alone().reclaim(space_wanted_, space_missing_);
    out_of_memory_ = reclaimed != Status::kOk || ++defers_ > kReclaimRoundsMax;
  }
  begin_round();
}

MessageRunner::EntryNext MessageRunner::next_of(uint32_t index) {
  BatchEntry& entry = batch_->entries[index];
  while (true) {
    while (entry.frames_done < entry.frame_count &&
           answers_[entry.first_frame + entry.frames_done].answered) {
      if (answers_[entry.first_frame + entry.frames_done].state == FrameState::kQuit) {
        entry.close = true;
      }
      ++entry.frames_done;
    }
    if (entry.close || entry.frames_done == entry.frame_count) return EntryNext::kFinished;
    if (answers_[entry.first_frame + entry.frames_done].denied) {
      deny(index, entry.first_frame + entry.frames_done);
      continue;
    }
    const uint32_t first = entry.first_frame + entry.frames_done;
    bool has_hole = false;
    for (uint32_t i = entry.frames_done; i < entry.frame_count && !has_hole; ++i) {
      has_hole = answers_[entry.first_frame + i].answered;
    }
    if (answers_[first].state == FrameState::kHost) {
      if (run_on_host(index, first, has_hole)) continue;
      return EntryNext::kFinished;
    }
    return next_of_first(index, first, has_hole);
  }
}

// What to do about the first frame without an answer.
MessageRunner::EntryNext MessageRunner::next_of_first(uint32_t index, uint32_t frame,
                                                      bool has_hole) {
  BatchEntry& entry = batch_->entries[index];
  const Answer& answer = answers_[frame];
  switch (answer.state) {
    case FrameState::kDeferred:
      space_wanted_ = std::max<uint64_t>(space_wanted_, std::max(answer.bytes, 1u));
      space_missing_ += answer.bytes;
      return EntryNext::kAgain;
    case FrameState::kLargeValue:
      if (has_hole) {
        fetch_apart(frame);
      } else if (fetch_large(entry, frame) == EntryNext::kFinished) {
        return EntryNext::kFinished;
      }
      return next_of(index);
    case FrameState::kNoReplySpace:
    case FrameState::kNotReached:
      break;
    case FrameState::kDone:
    case FrameState::kQuit:
    case FrameState::kHost:
      WC_ASSERT(false);
  }
  const bool space = config_.reply_arena_bytes - arena_used_ > 2 * kArenaValueMax;
  if (entry.datagram || has_hole) {
    // It must be answered now.
    if (space) return EntryNext::kAgain;
    if (entry.datagram) {
      fail_datagram(entry, bytes_of(kDatagramTooLarge));
    } else {
      fetch_apart(frame);
    }
    return next_of(index);
  }
  const bool had_share = entry_bytes_[index] >= kEntryReplySlice;
  return had_share || !space ? EntryNext::kFinished : EntryNext::kAgain;
}

// The error is the whole answer.
void MessageRunner::fail_datagram(const BatchEntry& entry, Bytes error) {
  for (uint32_t i = 0; i < entry.frame_count; ++i) answer_with(entry.first_frame + i, {});
  answer_with(entry.first_frame, error);
}

// --- The end

// Turns answers into spans. Neighbouring bytes in memory share a span.
void MessageRunner::finish() {
  Batch& batch = *batch_;
  if (changes_.on()) changes_.end();
  for (uint32_t index = 0; index < batch.entries.size(); ++index) {
    BatchEntry& entry = batch.entries[index];
    entry.first_span = static_cast<uint32_t>(batch.spans.size());
    for (uint32_t i = 0; i < entry.frames_done; ++i) {
      const Answer& answer = answers_[entry.first_frame + i];
      if (answer.size == 0) continue;
      const bool first = batch.spans.size() == entry.first_span;
      if (!first && answer.pin == 0 && batch.spans.back().pin == 0 &&
          batch.spans.back().data + batch.spans.back().size == answer.data) {
        batch.spans.back().size += answer.size;
      } else {
        batch.spans.push_back({answer.data, answer.size, answer.pin});
      }
    }
    entry.span_count = static_cast<uint32_t>(batch.spans.size()) - entry.first_span;
    batch.stream_not_reached =
        batch.stream_not_reached || (entry.frames_done == 0 && !entry.datagram);
    if (entry.reservation != 0 && entry.frames_done > 0 && !faults_.failed()) {
      runner_.release_device();
      parts_.bodies.abandon(entry.reservation);
    }
    if (WC_UNLIKELY(wants_keys_)) show_requests(entry);
  }
}

// Of what the GPU has done and has not been reported.
void MessageRunner::show_requests(const BatchEntry& entry) {
  for (uint32_t i = 0; i < entry.frames_done; ++i) {
    const uint32_t frame = entry.first_frame + i;
    Answer& answer = answers_[frame];
    if (answer.shown || (!is_done(answer.state) && !answer.reported)) continue;
    answer.shown = true;
    protocol::Request request;
    const uint8_t* const input = peek_.parse(batch_->frames[frame], batch_->input, request);
    if (!request::acts_on_key(request.op)) continue;
    const Bytes key = {input + request.key_offset, request.key_size};
    if (answer.reported) {
      show(entry, request, key, frame);
    } else {
      admin_.saw_key(request.op, key, counts_as_hit(static_cast<protocol::Outcome>(answer.bytes)));
    }
  }
}

void MessageRunner::show(const BatchEntry& entry, const protocol::Request& request, Bytes key,
                         uint32_t frame) {
  const FrameReport& report = frame_reports_[frame];
  protocol::Result result = {};
  result.outcome = static_cast<protocol::Outcome>(answers_[frame].bytes);
  result.status = report.status;
  result.number = report.number;
  result.value_size = report.value_size;
  request::KeyBefore before;
  before.state = report.before;
  before.value_size = report.value_size_before;
  before.expiry = report.expiry_before;
  before.cas = report.cas_before;
  const store::Clock clock = parts_.store.clock();
  admin_.saw_request({.request = request,
                      .result = result,
                      .key = key,
                      .hit = counts_as_hit(result.outcome),
                      .fd = entry.fd,
                      .before = before.state,
                      .value_size_before = before.value_size,
                      .ttl = request::ttl_of_stored(request, result.outcome, before, clock)});
}

}  // namespace warpcache::engine::cuda
