// SPDX-License-Identifier: Apache-2.0
//
// Test support: what framing does with usual lines in a way of their own must be what it does with
// any line, and parse() must make the same request of the frame.
#pragma once

#include <cstring>
#include <string>

#include "base/assert.h"
#include "base/testing/heap_copy.h"
#include "protocol/framing/frame.h"
#include "protocol/parse/parse.h"

namespace warpcache::protocol::testing {

// Where the line of a frame starts, if it may be a usual one.
inline bool find_usual_line(const Frame& frame, Bytes input, uint32_t& start) {
  start = frame.offset;
  switch (frame.verdict) {
    case Verdict::kTextStore:
    case Verdict::kMetaStore:
    case Verdict::kMetaLine:
      return frame.detail != 0;
    case Verdict::kTextKey:
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

// Checks `frame`, which frame() has made of `input` with `limits`.
inline void check_usual_line(const Frame& frame, FrameLimits limits, Bytes input) {
  uint32_t start = 0;
  if (!find_usual_line(frame, input, start)) return;
  limits.inline_body_max = UINT32_MAX;  // its body is in the input; in datagrams all bodies are
  FrameState state = {};
  state.protocol = kProtocolText;
  Frame other = {};
  Framer framer(state, limits, input.from(start), start, frame.entry, &other, 1);
  const LineScan scan = scan_line(framer.begin(), framer.at(), framer.end(), kLineSizeMax);
  WC_ASSERT(scan.size != 0);
  WC_ASSERT(framing::take_any_line(framer, scan) == FrameStep::kTaken && framer.count() == 1);
  WC_ASSERT(other.offset == frame.offset && other.head_size == frame.head_size &&
            other.body_size == frame.body_size && other.verdict == frame.verdict &&
            other.entry == frame.entry);
  WC_ASSERT(other.detail == (frame.verdict == Verdict::kTextKey ? frame.detail : 0));
  const Request usual = request_of(frame, input);
  const Request any = request_of(other, input);
  WC_ASSERT(std::memcmp(&usual, &any, sizeof usual) == 0);
}

}  // namespace warpcache::protocol::testing
