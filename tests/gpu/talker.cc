// SPDX-License-Identifier: Apache-2.0
#include "gpu/talker.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "base/testing/patience.h"
#include "protocol/framing/frame.h"

namespace warpcache::gpu_tests {

namespace {

constexpr uint32_t kFramesMax = 64 * 1024;
constexpr protocol::FrameLimits kLimits = {1 << 20, 1 << 20, true, protocol::kProtocolAuto};

}  // namespace

std::vector<Answer> Talker::say_all(const std::vector<std::string>& connections) {
  std::vector<Answer> answers(connections.size());
  frame(connections);
  while (!batch_.entries.empty()) {
    run();
    if (!take(answers)) throw std::runtime_error("a batch ends with nothing done");
    keep_rest();
  }
  return answers;
}

void Talker::frame(const std::vector<std::string>& connections) {
  batch_.input = input_;
  batch_.frames.resize(kFramesMax);
  batch_.entries.clear();
  connection_of_.clear();
  uint32_t used = 0;
  uint32_t frames = 0;
  for (const std::string& bytes : connections) {
    WC_ASSERT(frames < kFramesMax && bytes.size() <= kInputBytes - used);
    std::copy(bytes.begin(), bytes.end(), input_ + used);
    protocol::FrameState state = {};
    const auto number = static_cast<uint32_t>(batch_.entries.size());
    const protocol::FrameResult framed =
        protocol::frame(state, kLimits, {input_ + used, bytes.size()}, used, number,
                        batch_.frames.data() + frames, kFramesMax - frames);
    WC_ASSERT(framed.consumed == bytes.size());
    engine::BatchEntry entry;
    entry.first_frame = frames;
    entry.frame_count = framed.count;
    entry.connection_id = number + 1;
    batch_.entries.push_back(entry);
    connection_of_.push_back(number);
    frames += framed.count;
    used += framed.consumed;
  }
  batch_.frames.resize(frames);
}

void Talker::run() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  engine_.submit(&batch_);
  while (engine_.poll() == nullptr) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("a batch does not end");
    }
    std::this_thread::yield();  // to a simulated GPU
  }
}

// False: no connection has made progress.
bool Talker::take(std::vector<Answer>& answers) {
  bool progress = false;
  for (size_t i = 0; i < batch_.entries.size(); ++i) {
    const engine::BatchEntry& entry = batch_.entries[i];
    Answer& answer = answers[connection_of_[i]];
    for (uint32_t s = 0; s < entry.span_count; ++s) {
      const engine::ReplySpan& span = batch_.spans[entry.first_span + s];
      answer.bytes.append(reinterpret_cast<const char*>(span.data), span.size);
      if (span.pin != 0 && span.pin != engine::kPinFollows) engine_.release(span.pin);
    }
    answer.closed |= entry.close;
    progress |= entry.close || entry.frames_done != 0;
  }
  return progress;
}

// Frames without an answer become the next batch.
void Talker::keep_rest() {
  std::vector<engine::BatchEntry> entries;
  std::vector<protocol::Frame> frames;
  std::vector<uint32_t> connections;
  for (size_t i = 0; i < batch_.entries.size(); ++i) {
    const engine::BatchEntry& old = batch_.entries[i];
    if (old.close || old.frames_done == old.frame_count) continue;
    engine::BatchEntry entry;
    entry.first_frame = static_cast<uint32_t>(frames.size());
    entry.frame_count = old.frame_count - old.frames_done;
    entry.connection_id = old.connection_id;
    for (uint32_t f = old.frames_done; f < old.frame_count; ++f) {
      frames.push_back(batch_.frames[old.first_frame + f]);
      frames.back().entry = static_cast<uint32_t>(entries.size());
    }
    entries.push_back(entry);
    connections.push_back(connection_of_[i]);
  }
  batch_.entries = std::move(entries);
  batch_.frames = std::move(frames);
  connection_of_ = std::move(connections);
}

}  // namespace warpcache::gpu_tests
