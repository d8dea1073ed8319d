// SPDX-License-Identifier: Apache-2.0
//
// Test support: an engine over a std::map with a part of the text protocol: get, set, delete, quit
// and errors by number. It checks that the worker keeps the contract of engine.h. A test can limit
// its reply space.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "engine/testing/engine_without_packets.h"
#include "protocol/parse/parse.h"

namespace warpcache::worker {

class FakeEngine final : public engine::EngineWithoutPackets {
 public:
  uint32_t frames_per_entry_max = 1u << 30;  // above it, frames_done stays below frame_count
  uint32_t frames_per_batch_max = 1u << 30;  // the same, over all entries
  uint32_t window_max = 1u << 30;            // bytes of a reservation_window()
  uint32_t reservations_max = 16;            // at a time
  size_t pinned_above = 100;                 // larger values are sent pinned

  // `batches_max` may be under way; the one that came last is ready first.
  explicit FakeEngine(uint32_t batches_max = 1) : batches_max_(batches_max) {}

  ~FakeEngine() override { WC_ASSERT(pins_.empty() && reservations_.empty()); }

  uint32_t batches() const override { return batches_max_; }
  uint8_t* input_memory(uint32_t bytes) override {
    return inputs_.emplace_back(std::make_unique<uint8_t[]>(bytes)).get();
  }
  void submit(engine::Batch* batch) override {
    WC_ASSERT(done_.size() < batches_max_);
    ++batch_count;
    batches_most = std::max(batches_most, done_.size() + 1);
    frames_most = std::max(frames_most, batch->frames.size());
    batch->spans.clear();
    batch->stream_not_reached = false;
    replies_ = &replies_of_[batch];
    replies_->clear();
    batch_frames_ = 0;
    uint32_t next_frame = 0;
    for (uint32_t i = 0; i < batch->entries.size(); ++i) {
      engine::BatchEntry& entry = batch->entries[i];
      WC_ASSERT(entry.frame_count > 0 && entry.first_frame == next_frame);
      next_frame += entry.frame_count;
      entry.long_reply = nullptr;
      source = entry.source;
      run_entry(*batch, i);
      batch->stream_not_reached = batch->stream_not_reached || entry.frames_done == 0;
    }
    WC_ASSERT(next_frame == batch->frames.size());
    done_.push_back(batch);
  }

  // Ready at the second call, so that a caller that does not poll again fails.
  engine::Batch* poll() override {
    asked_ = !asked_;
    if (asked_ || done_.empty()) return nullptr;
    engine::Batch* const batch = done_.back();
    done_.pop_back();
    return batch;
  }

  void release(uint32_t pin) override { WC_ASSERT(pins_.erase(pin) == 1); }

  Status reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) override {
    WC_ASSERT(key_size > 0);
    if (reservations_.size() >= reservations_max) return Status::kDeferred;
    *id = ++last_id_;
    reservations_[*id].resize(body_size);
    return Status::kOk;
  }
  MutableBytes reservation_window(uint32_t id, uint32_t received, uint32_t after) override {
    std::string& body = reservations_.at(id);
    const uint32_t offset = received + after;
    WC_ASSERT(offset < body.size());
    return {reinterpret_cast<uint8_t*>(body.data()) + offset,
            std::min<size_t>(window_max, body.size() - offset)};
  }
  void abandon(uint32_t id) override { WC_ASSERT(reservations_.erase(id) == 1); }
  void release_device() override {
    WC_ASSERT(done_.empty());
    ++device_releases;
  }

  size_t reservation_count() const { return reservations_.size(); }
  size_t pin_count() const { return pins_.size(); }
  uint64_t batch_count = 0;
  size_t batches_most = 0;  // under way at a time
  uint64_t device_releases = 0;
  size_t frames_most = 0;  // the most frames in one batch
  uint64_t requests = 0;
  uint64_t source = 0;  // of the entry that came last

 private:
  uint32_t batches_max_;
  std::vector<std::unique_ptr<uint8_t[]>> inputs_;
  void run_entry(engine::Batch& batch, uint32_t index) {
    engine::BatchEntry& entry = batch.entries[index];
    entry.first_span = static_cast<uint32_t>(batch.spans.size());
    entry.frames_done = 0;
    while (entry.frames_done < entry.frame_count && !entry.close) {
      if (entry.frames_done == frames_per_entry_max) break;
      if (batch_frames_ == frames_per_batch_max) break;
      const protocol::Frame& frame = batch.frames[entry.first_frame + entry.frames_done];
      WC_ASSERT(frame.entry == index);
      run_frame(batch, entry, frame);
      ++entry.frames_done;
      ++batch_frames_;
      ++requests;
    }
    entry.span_count = static_cast<uint32_t>(batch.spans.size()) - entry.first_span;
  }

  void run_frame(engine::Batch& batch, engine::BatchEntry& entry, const protocol::Frame& frame) {
    protocol::Request request;
    protocol::parse_request(frame, batch.input, request);
    const std::string key(reinterpret_cast<const char*>(batch.input) + request.key_offset,
                          request.key_size);
    const bool quiet = (request.bits & protocol::kNoReply) != 0;
    const bool reserved = entry.frames_done == 0 && entry.reservation != 0;
    std::string reply;
    if (request.op == protocol::Op::kInvalid || request.status != Status::kOk) {
      reply = "ERROR " + std::to_string(static_cast<int>(request.status)) + "\r\n";
    } else if (request.op == protocol::Op::kSet) {
      std::string value =
          reserved ? reservations_.at(entry.reservation)
                   : std::string(reinterpret_cast<const char*>(batch.input) + request.value_offset,
                                 request.value_size);
      values_[key] = std::move(value);
      reply = "STORED\r\n";
    } else if (request.op == protocol::Op::kGet) {
      get(batch, key, (request.bits & protocol::kLastKey) != 0);
      return;
    } else if (request.op == protocol::Op::kDelete) {
      reply = values_.erase(key) == 1 ? "DELETED\r\n" : "NOT_FOUND\r\n";
    } else if (request.op == protocol::Op::kQuit) {
      entry.close = true;
    } else if (request.op == protocol::Op::kVersion) {
      reply = "VERSION\r\n";
    }
    if (reserved) abandon(entry.reservation);
    if (!quiet) add(batch, std::move(reply), false);
  }

  void get(engine::Batch& batch, const std::string& key, bool last) {
    const auto found = values_.find(key);
    if (found != values_.end()) {
      add(batch, "VALUE " + key + " 0 " + std::to_string(found->second.size()) + "\r\n", false);
      add(batch, found->second, found->second.size() > pinned_above);
      add(batch, "\r\n", false);
    }
    if (last) add(batch, "END\r\n", false);
  }

  void add(engine::Batch& batch, std::string text, bool pinned) {
    if (text.empty()) return;
    const uint32_t pin = pinned ? ++last_pin_ : 0;
    std::string& kept =
        pinned ? pins_[pin] = std::move(text) : replies_->emplace_back(std::move(text));
    batch.spans.push_back(
        {reinterpret_cast<const uint8_t*>(kept.data()), static_cast<uint32_t>(kept.size()), pin});
  }

  std::map<std::string, std::string> values_;
  std::map<uint32_t, std::string> reservations_;
  std::map<uint32_t, std::string> pins_;
  std::map<engine::Batch*, std::deque<std::string>> replies_of_;
  std::deque<std::string>* replies_ = nullptr;  // of the batch that is run
  std::vector<engine::Batch*> done_;            // in the order in which they came
  uint32_t batch_frames_ = 0;
  bool asked_ = false;
  uint32_t last_id_ = 0;
  uint32_t last_pin_ = 0;
};

}  // namespace warpcache::worker
