// SPDX-License-Identifier: Apache-2.0
#include "stress/speaker.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/assert.h"

namespace warpcache::stress {

namespace {

constexpr uint32_t kItemSizeMax = 8 << 20;  // bytes
constexpr uint32_t kFramesMax = 256;

protocol::FrameLimits limits() {
  protocol::FrameLimits limits = {};
  limits.item_size_max = kItemSizeMax;
  limits.inline_body_max = kItemSizeMax;
  limits.cas_enabled = true;
  return limits;
}

engine::CpuEngineConfig engine_config() {
  engine::CpuEngineConfig config;
  config.item_size_max = kItemSizeMax;
  return config;
}

}  // namespace

Speaker::Speaker(store::Store& store) : admin_(store), engine_(engine_config(), store, admin_) {}

void Speaker::release_pins() {
  for (const uint32_t pin : pins_) engine_.release(pin);
  pins_.clear();
}

// Frames without an answer become the next batch. False: all are answered.
bool Speaker::keep_unfinished() {
  std::vector<protocol::Frame> frames;
  std::vector<engine::BatchEntry> entries;
  std::vector<uint32_t> connections;
  for (uint32_t i = 0; i < batch_.entries.size(); ++i) {
    const engine::BatchEntry& done = batch_.entries[i];
    if (done.frames_done == done.frame_count || done.close) continue;
    engine::BatchEntry entry;
    entry.first_frame = static_cast<uint32_t>(frames.size());
    entry.frame_count = done.frame_count - done.frames_done;
    if (done.frames_done == 0) entry.reservation = done.reservation;
    for (uint32_t f = done.frames_done; f < done.frame_count; ++f) {
      frames.push_back(batch_.frames[done.first_frame + f]);
      frames.back().entry = static_cast<uint32_t>(entries.size());
    }
    entries.push_back(entry);
    connections.push_back(entry_connections_[i]);
  }
  batch_.frames = std::move(frames);
  batch_.entries = std::move(entries);
  entry_connections_ = std::move(connections);
  return !batch_.entries.empty();
}

void Speaker::submit_all(std::vector<std::string>* replies) {
  batches_ = 0;
  reply_bytes_max_ = 0;
  do {
    engine_.submit(&batch_);
    WC_ASSERT(engine_.poll() == &batch_);
    ++batches_;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < batch_.entries.size(); ++i) {
      const engine::BatchEntry& entry = batch_.entries[i];
      for (uint32_t s = 0; s < entry.span_count; ++s) {
        const engine::ReplySpan& span = batch_.spans[entry.first_span + s];
        (*replies)[entry_connections_[i]].append(reinterpret_cast<const char*>(span.data),
                                                 span.size);
        bytes += span.size;
        if (span.pin != 0 && span.pin != engine::kPinFollows) pins_.push_back(span.pin);
      }
    }
    release_pins();
    reply_bytes_max_ = std::max(reply_bytes_max_, bytes);
  } while (keep_unfinished());
}

// Frames the input from `first` to `end` of one connection; it becomes an entry.
void Speaker::frame_connection(uint32_t connection, uint32_t first, uint32_t end) {
  engine::BatchEntry entry;
  entry.first_frame = static_cast<uint32_t>(batch_.frames.size());
  const uint32_t index = static_cast<uint32_t>(batch_.entries.size());
  std::array<protocol::Frame, kFramesMax> frames;
  for (uint32_t at = first; at < end;) {
    const Bytes rest = {batch_.input + at, end - at};
    const protocol::FrameResult result =
        protocol::frame(framing_[connection], limits(), rest, at, index, frames.data(), kFramesMax);
    WC_ASSERT(result.consumed != 0);
    batch_.frames.insert(batch_.frames.end(), frames.begin(), frames.begin() + result.count);
    at += result.consumed;
  }
  entry.frame_count = static_cast<uint32_t>(batch_.frames.size()) - entry.first_frame;
  batch_.entries.push_back(entry);
  entry_connections_.push_back(connection);
}

std::vector<std::string> Speaker::say_each(const std::vector<std::string>& commands) {
  std::string input;
  for (const std::string& one : commands) input += one;
  batch_.input = reinterpret_cast<uint8_t*>(input.data());
  batch_.frames.clear();
  batch_.entries.clear();
  entry_connections_.clear();
  if (framing_.size() < commands.size()) framing_.resize(commands.size(), {});
  uint32_t at = 0;
  for (uint32_t i = 0; i < commands.size(); ++i) {
    const uint32_t end = at + static_cast<uint32_t>(commands[i].size());
    frame_connection(i, at, end);
    at = end;
  }
  std::vector<std::string> replies(commands.size());
  submit_all(&replies);
  return replies;
}

std::string Speaker::say(const std::string& commands) { return say_each({commands})[0]; }

std::string Speaker::set_reserved(const std::string& key, const std::string& value) {
  uint32_t id = 0;
  const uint32_t size = static_cast<uint32_t>(value.size());
  const Status status = engine_.reserve(static_cast<uint8_t>(key.size()), size, &id);
  if (status != Status::kOk) return "refused\r\n";
  for (uint32_t at = 0; at < size;) {
    const MutableBytes window = engine_.reservation_window(id, at, 0);
    std::memcpy(window.data, value.data() + at, window.size);
    at += static_cast<uint32_t>(window.size);
  }
  std::string head = "set " + key + " 0 0 " + std::to_string(size) + "\r\n";
  batch_.input = reinterpret_cast<uint8_t*>(head.data());
  protocol::Frame frame = {};
  frame.kind = protocol::FrameKind::kTextStore;
  frame.head_size = static_cast<uint16_t>(head.size());
  frame.body_size = size;
  batch_.frames.assign(1, frame);
  batch_.entries.assign(1, {});
  batch_.entries[0].frame_count = 1;
  batch_.entries[0].reservation = id;
  entry_connections_.assign(1, 0);
  std::vector<std::string> replies(1);
  submit_all(&replies);
  return replies[0];
}

std::string set_command(const std::string& key, const std::string& value) {
  return "set " + key + " 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n";
}

}  // namespace warpcache::stress
