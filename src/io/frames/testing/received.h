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
  explicit FrameMemory(uint32_t frames_max)
      : bytes_(4 * kFrameBytesMax), slots_(frames_max), times_(frames_max) {}

  // A buffer without frames.
  FrameBuffer& empty() {
    buffer_ = {bytes_.data(),
               static_cast<uint32_t>(bytes_.size()),
               slots_.data(),
               times_.data(),
               static_cast<uint32_t>(slots_.size()),
               0,
               0};
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
  std::vector<uint8_t> bytes_;
  std::vector<net::PacketSlot> slots_;
  std::vector<uint64_t> times_;
  FrameBuffer buffer_;
};

}  // namespace warpcache::io
