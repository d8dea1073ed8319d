// SPDX-License-Identifier: Apache-2.0
//
// For tests of ports: memory for a burst, and the frames in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/frames/frame_port.h"

namespace warpcache::io {

struct ReceivedFrame {
  std::string bytes;
  uint64_t time_ns = 0;
};

class FrameMemory {
 public:
  // `port` outlives this.
  FrameMemory(FramePort& port, uint32_t frames_max)
      : port_(port), bytes_(4 * kFrameBytesMax), slots_(frames_max), times_(frames_max) {
    const MutableBytes own = port.memory();
    buffer_.data = own.size != 0 ? own.data : bytes_.data();
    buffer_.size = static_cast<uint32_t>(bytes_.size());
    buffer_.slots = slots_.data();
    buffer_.times_ns = times_.data();
    buffer_.frames_max = frames_max;
  }
  FrameMemory(const FrameMemory&) = delete;
  FrameMemory& operator=(const FrameMemory&) = delete;
  ~FrameMemory() { port_.take_back(buffer_); }

  // A buffer without frames.
  FrameBuffer& empty() {
    port_.take_back(buffer_);
    buffer_.count = buffer_.used = 0;
    return buffer_;
  }
  // Appends the buffer's frames to `frames`.
  void take(std::vector<ReceivedFrame>& frames) const {
    for (uint32_t i = 0; i < buffer_.count; ++i) {
      const net::PacketSlot slot = buffer_.slots[i];
      frames.push_back({{reinterpret_cast<const char*>(buffer_.data) + slot.offset, slot.size},
                        buffer_.times_ns[i]});
    }
  }

 private:
  FramePort& port_;
  std::vector<uint8_t> bytes_;
  std::vector<net::PacketSlot> slots_;
  std::vector<uint64_t> times_;
  FrameBuffer buffer_;
};

}  // namespace warpcache::io
