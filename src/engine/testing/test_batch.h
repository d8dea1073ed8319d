// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "protocol/framing/frame.h"

namespace warpcache::engine {

// A batch of requests of several connections, given as text.
class TestBatch {
 public:
  // Adds the frames of `text` as one more entry.
  void add(const std::string& text, bool datagram = false) {
    texts_.push_back(text);
    BatchEntry entry;
    entry.datagram = datagram;
    batch_.entries.push_back(entry);
  }

  // `input` is memory of the engine for all texts; null: the engine reads any memory.
  Batch* build(uint8_t* input = nullptr) {
    input_.clear();
    for (const std::string& text : texts_) input_ += text;
    batch_.input = reinterpret_cast<uint8_t*>(input_.data());
    if (input != nullptr)
      batch_.input = std::copy(input_.begin(), input_.end(), input) - input_.size();
    uint32_t offset = 0;
    for (uint32_t i = 0; i < texts_.size(); ++i) {
      frame_entry(i, offset);
      offset += static_cast<uint32_t>(texts_[i].size());
    }
    return &batch_;
  }

  BatchEntry& entry(uint32_t i) { return batch_.entries[i]; }
  bool stream_not_reached() const { return batch_.stream_not_reached; }

  std::string reply(uint32_t i) const {
    const BatchEntry& entry = batch_.entries[i];
    std::string text;
    for (uint32_t s = 0; s < entry.span_count; ++s) {
      const ReplySpan& span = batch_.spans[entry.first_span + s];
      text.append(reinterpret_cast<const char*>(span.data), span.size);
    }
    return text;
  }

  std::vector<uint32_t> pins() const {
    std::vector<uint32_t> pins;
    for (const ReplySpan& span : batch_.spans) {
      if (span.pin != 0 && span.pin != kPinFollows) pins.push_back(span.pin);
    }
    return pins;
  }

 private:
  void frame_entry(uint32_t index, uint32_t offset) {
    protocol::FrameState state = {};
    protocol::FrameLimits limits = {};
    limits.item_size_max = 64 * 1024 * 1024;
    limits.inline_body_max = 64 * 1024 * 1024;
    limits.cas_enabled = true;
    std::vector<protocol::Frame> frames(10000);
    const Bytes text = {batch_.input + offset, texts_[index].size()};
    const protocol::FrameResult result = protocol::frame(
        state, limits, text, offset, index, frames.data(), static_cast<uint32_t>(frames.size()));
    BatchEntry& entry = batch_.entries[index];
    entry.first_frame = static_cast<uint32_t>(batch_.frames.size());
    entry.frame_count = result.count;
    batch_.frames.insert(batch_.frames.end(), frames.begin(), frames.begin() + result.count);
  }

  std::vector<std::string> texts_;
  std::string input_;
  Batch batch_;
};

}  // namespace warpcache::engine
