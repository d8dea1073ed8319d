// SPDX-License-Identifier: Apache-2.0
//
// Test support: what framing makes of usual lines must be what it makes of the same line as of any
// other, and parse() must make the same request of the frame.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/testing/heap_copy.h"
#include "protocol/framing/frame.h"
#include "protocol/parse/parse.h"

namespace warpcache::protocol::testing {

// Where the line of a frame starts, if it may be a usual one.
inline bool find_usual_line(const Frame& frame, Bytes input, uint32_t& start) {
  start = frame.offset;
  switch (frame.kind) {
    case FrameKind::kTextStore:
    case FrameKind::kMetaStore:
    case FrameKind::kMetaLine:
      return frame.detail != 0;
    case FrameKind::kTextKey:
      start = frame.offset - 4;
      return frame.detail == kKeyLast && frame.offset >= 4 &&
             std::memcmp(input.data + start, "get ", 4) == 0;
    default:
      return false;
  }
}

// The request of a frame. Parses a copy of the input, since parsing may change it.
inline Request request_of(const Frame& frame, Bytes input) {
  warpcache::base::testing::HeapCopy copy(warpcache::base::testing::text_of(input));
  Request request;
  parse_request(frame, copy.data(), request);
  return request;
}

// What framing makes of any line at `start`, without what it has for usual ones; `out` has space
// for `capacity` frames. Returns their number.
inline uint32_t frame_any_line(FrameLimits limits, Bytes input, uint32_t start, uint32_t entry,
                               Frame* out, uint32_t capacity) {
  limits.inline_body_max = UINT32_MAX;  // its body is in the input; in datagrams all bodies are
  FrameState state = {};
  state.protocol = kProtocolText;
  Framer framer(state, limits, input.from(start), start, entry, out, capacity);
  const LineScan scan = scan_line(framer.begin(), framer.at(), framer.end(), kLineSizeMax);
  FrameStep step =
      scan.size == 0 ? framing::take_long_line(framer) : framing::take_any_line(framer, scan);
  while (step == FrameStep::kTaken && state.multiget != 0) step = framing::take_keys(framer);
  return framer.count();
}

inline void check_usual_line(const Frame& frame, const FrameLimits& limits, Bytes input) {
  uint32_t start = 0;
  if (!find_usual_line(frame, input, start)) return;
  Frame other = {};
  WC_ASSERT(frame_any_line(limits, input, start, frame.entry, &other, 1) == 1);
  WC_ASSERT(other.offset == frame.offset && other.head_size == frame.head_size &&
            other.body_size == frame.body_size && other.kind == frame.kind &&
            other.entry == frame.entry);
  WC_ASSERT(other.detail == (frame.kind == FrameKind::kTextKey ? frame.detail : 0));
  const Request usual = request_of(frame, input);
  const Request any = request_of(other, input);
  WC_ASSERT(std::memcmp(&usual, &any, sizeof usual) == 0);
}

// Frame `first` of `frames` is of the first key of a line: the keys after it must be those that
// any line has. `in_line`: the input starts between the keys of a line.
inline void check_get_line(const Frame* frames, uint32_t count, uint32_t first,
                           const FrameLimits& limits, Bytes input, bool in_line) {
  const uint32_t offset = frames[first].offset;
  if (frames[first].kind != FrameKind::kTextKey || offset < 4) return;
  if (std::memcmp(input.data + offset - 4, "get ", 4) != 0) return;
  if (offset == 4 ? in_line : input.data[offset - 5] != '\n') return;
  std::vector<Frame> others(count - first);
  const uint32_t found =
      frame_any_line(limits, input, offset - 4, frames[first].entry, others.data(), count - first);
  for (uint32_t i = 0; i < found; ++i) {
    WC_ASSERT(std::memcmp(&others[i], &frames[first + i], sizeof(Frame)) == 0);
  }
  WC_ASSERT(found != 0);
  const uint32_t end = first + found;
  // In a long line an error follows the keys before one that is too long.
  WC_ASSERT(end == count || others[found - 1].detail == kKeyLast ||
            frames[end].kind == FrameKind::kInvalid);
}

// Checks `frames`, which frame() has made of `input` with `limits`. `in_line`: the input starts
// between the keys of a line.
inline void check_usual_lines(const Frame* frames, uint32_t count, const FrameLimits& limits,
                              Bytes input, bool in_line) {
  for (uint32_t i = 0; i < count; ++i) {
    check_usual_line(frames[i], limits, input);
    check_get_line(frames, count, i, limits, input, in_line);
  }
}

}  // namespace warpcache::protocol::testing
