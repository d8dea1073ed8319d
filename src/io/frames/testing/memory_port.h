// SPDX-License-Identifier: Apache-2.0
//
// A port of frames in memory: receives what a test has added, keeps what is sent and passed on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/mem.h"
#include "io/frames/frame_port.h"

namespace warpcache::io {

class MemoryPort final : public FramePort {
 public:
  struct Frame {
    std::string bytes;
    uint64_t time_ns = 0;
  };

  // To be received. receive() returns false when nothing is left.
  void add(std::string frame, uint64_t time_ns = 0) {
    input_.push_back({std::move(frame), time_ns});
  }
  // The most frames of one receive().
  void set_burst(uint32_t frames) { burst_ = frames; }

  // Takes what has been sent since the last call.
  std::vector<Frame> take_sent() { return std::exchange(sent_, {}); }
  std::vector<std::string> take_passed_on() { return std::exchange(passed_on_, {}); }

  bool receive(FrameBuffer& buffer, int) override {
    for (uint32_t i = 0; i < burst_ && buffer.has_space() && next_ < input_.size(); ++i) {
      const Frame& frame = input_[next_++];
      counters_.received.add(1);
      counters_.received_bytes.add(frame.bytes.size());
      mem_copy(buffer.next(), frame.bytes.data(), frame.bytes.size());
      buffer.add(static_cast<uint32_t>(frame.bytes.size()), frame.time_ns);
    }
    return next_ < input_.size();
  }
  void send(uint32_t /*burst*/, const TxFrame* frames, uint32_t count) override {
    for (uint32_t i = 0; i < count; ++i) {
      sent_.push_back({text_of(frames[i].bytes), frames[i].time_ns});
      counters_.sent.add(1);
    }
  }
  void pass_on(const MutableBytes* frames, uint32_t count) override {
    for (uint32_t i = 0; i < count; ++i) {
      passed_on_.push_back(text_of({frames[i].data, frames[i].size}));
      counters_.passed_on.add(1);
    }
  }
  void stop() override { next_ = input_.size(); }
  std::string describe() const override { return "memory"; }

 private:
  static std::string text_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data), bytes.size};
  }

  std::vector<Frame> input_;
  size_t next_ = 0;
  uint32_t burst_ = UINT32_MAX;
  std::vector<Frame> sent_;
  std::vector<std::string> passed_on_;
};

}  // namespace warpcache::io
