// SPDX-License-Identifier: Apache-2.0
//
// The frames of one packet's reply, in the layout in which the device has written them.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "engine/cuda/runtime/job.h"

namespace warpcache::engine::cuda {

class ReplyFrames {
 public:
  // `arena` is PacketBatch::replies, and must stay while the frames are used. A packet that is not
  // done has no frames.
  ReplyFrames(const uint8_t* arena, PacketResult result) {
    if (result.state() != PacketState::kDone) return;
    first_ = arena + result.offset();
    run_.last_bytes = result.size();
    run_.count = result.size() != 0 ? 1 : 0;
    if (!result.is_run()) return;
    std::memcpy(&run_, first_, sizeof(run_));
    first_ += sizeof(run_);
  }

  uint32_t count() const { return run_.count; }
  // REQUIRES: number < count().
  Bytes operator[](uint32_t number) const {
    const uint32_t granules = number * FrameRun::words_of(run_.frame_bytes);
    return {first_ + uint64_t{granules} * PacketResult::kReplyGranule,
            number + 1 == run_.count ? run_.last_bytes : run_.frame_bytes};
  }

 private:
  const uint8_t* first_ = nullptr;
  FrameRun run_ = {};
};

}  // namespace warpcache::engine::cuda
