// SPDX-License-Identifier: Apache-2.0
//
// How a datagram becomes an entry of a batch, whatever port it came from.
#pragma once

#include "engine/engine.h"
#include "protocol/framing/frame.h"

namespace warpcache::engine {

// The most messages of a datagram; a datagram with more is dropped. Twice as many as keys of 6
// bytes fit into the largest datagram. Without this bound, a datagram of line ends would need 16
// times its size for frames.
inline constexpr uint32_t kDatagramFramesMax = 8 * 1024;

// Appends a datagram to `batch`: its entry and the frames of its messages, which begin at `offset`
// of the batch's input. All requests of a datagram are answered together. Sets the fields of
// `entry`, which the batch gets a copy of, that say so. False: there is nothing to answer, or there
// are too many messages; the batch is unchanged. REQUIRES: the batch has capacity for
// kDatagramFramesMax frames.
inline bool append_datagram(Batch& batch, const protocol::FrameLimits& limits, uint32_t offset,
                            uint32_t size, BatchEntry& entry) {
  constexpr uint32_t kScratchFrames = 64;
  protocol::Frame scratch[kScratchFrames];
  const auto number = static_cast<uint32_t>(batch.entries.size());
  entry.first_frame = static_cast<uint32_t>(batch.frames.size());
  entry.datagram = true;
  protocol::FrameState state{};
  for (uint32_t cursor = 0; cursor < size;) {
    const protocol::FrameResult result =
        protocol::frame_datagram(state, limits, {batch.input + offset + cursor, size - cursor},
                                 offset + cursor, number, scratch, kScratchFrames);
    if (WC_UNLIKELY(batch.frames.size() - entry.first_frame + result.count > kDatagramFramesMax)) {
      batch.frames.resize(entry.first_frame);
      return false;
    }
    batch.frames.insert(batch.frames.end(), scratch, scratch + result.count);
    cursor += result.consumed;
    if (result.end != protocol::FrameEnd::kFull) break;
  }
  entry.frame_count = static_cast<uint32_t>(batch.frames.size()) - entry.first_frame;
  if (entry.frame_count == 0) return false;
  batch.entries.push_back(entry);
  return true;
}

}  // namespace warpcache::engine
