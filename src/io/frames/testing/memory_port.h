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

  // Each frame gets a buffer of this size, in which replies may lie, too.
  void set_frame_room(uint32_t bytes) { frame_room_ = bytes; }
  // How many replies were sent by send_beside().
  uint64_t sent_beside() const { return sent_beside_; }

  // Takes what has been sent since the last call.
  std::vector<Frame> take_sent() { return std::exchange(sent_, {}); }
  std::vector<std::string> take_passed_on() { return std::exchange(passed_on_, {}); }

  bool receive(FrameBuffer& buffer, int) override {
    for (uint32_t i = 0; i < burst_ && buffer.has_space() && next_ < input_.size(); ++i) {
      const Frame& frame = input_[next_++];
      counters_.received.add(1);
      counters_.received_bytes.add(frame.bytes.size());
      mem_copy(buffer.next(), frame.bytes.data(), frame.bytes.size());
      const uint32_t begin = buffer.used;
      buffer.add(static_cast<uint32_t>(frame.bytes.size()), frame.time_ns);
      if (frame_room_ != 0) buffer.used = begin + frame_room_;
    }
    buffer.frame_room = frame_room_;
    received_ = buffer;
    return next_ < input_.size();
  }
  void send(uint32_t /*burst*/, const TxFrame* frames, uint32_t count) override {
    for (uint32_t i = 0; i < count; ++i) {
      sent_.push_back({text_of(frames[i].bytes), frames[i].time_ns});
      counters_.sent.add(1);
    }
  }
  bool send_beside(const RepliesBeside& replies) override {
    for (uint32_t i = 0; i < replies.count; ++i) {
      if (!replies.takes(replies.result(i))) return false;
    }
    for (uint32_t i = replies.first; i < replies.first + replies.count; ++i) {
      const net::PacketResult result = replies.results[i].without_beside(frame_room_);
      const uint8_t* const request = received_.data + received_.slots[i].offset;
      sent_.push_back({text_of({request + result.offset(), result.size()}), received_.times_ns[i]});
    }
    sent_beside_ += replies.count;
    return true;
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
  uint32_t frame_room_ = 0;
  FrameBuffer received_;  // the last burst; an engine of the CPU has one
  uint64_t sent_beside_ = 0;
  std::vector<Frame> sent_;
  std::vector<std::string> passed_on_;
};

}  // namespace warpcache::io
