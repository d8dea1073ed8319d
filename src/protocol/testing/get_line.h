// SPDX-License-Identifier: Apache-2.0
//
// Compares get_line.h with the framer and the parser: for tests and fuzz targets.
#pragma once

#include <string>
#include <vector>

#include "protocol/framing/frame.h"
#include "protocol/framing/get_line.h"
#include "protocol/parse/parse.h"

namespace warpcache::protocol::testing {

// The keys that get_line.h finds, as offset and size.
struct LineKeys {
  bool taken = false;  // the payload is one line that it accepts
  bool with_cas = false;
  std::vector<std::pair<uint32_t, uint32_t>> keys;
};

// Splits a payload that lies `skew` bytes after a multiple of 16, block by block, as a device's
// threads do.
inline LineKeys split_get_line(const std::string& payload, uint32_t skew) {
  LineKeys found;
  // One block before, for the blank before a key; one after, for the end of the last block.
  std::vector<uint64_t> memory((payload.size() + skew) / sizeof(uint64_t) + 8, ~uint64_t{0});
  auto* const base = reinterpret_cast<uint8_t*>(memory.data()) + kGetLineBlock;
  std::copy(payload.begin(), payload.end(), base + skew);
  const GetLine line = open_get_line({base + skew, payload.size()});
  if (line.end == 0) return found;
  found.with_cas = line.with_cas;
  const uint32_t begin = skew + line.begin;
  const uint32_t end = skew + line.end;
  std::vector<uint32_t> firsts;
  std::vector<uint32_t> lasts;
  for (uint32_t at = begin / kGetLineBlock * kGetLineBlock; at < end; at += kGetLineBlock) {
    const KeyMarks marks = mark_keys(base + at, base + begin, base + end);
    if (marks.has_newline) return found;
    for (uint32_t i = 0; i < kGetLineBlock; ++i) {
      if ((marks.firsts >> i & 1) != 0) firsts.push_back(at + i - skew);
      if ((marks.lasts >> i & 1) != 0) lasts.push_back(at + i - skew);
    }
  }
  if (firsts.empty() || firsts.size() != lasts.size()) return found;
  found.taken = true;
  for (size_t i = 0; i < firsts.size(); ++i) {
    found.keys.emplace_back(firsts[i], lasts[i] + 1 - firsts[i]);
    // Such a line is refused as a whole.
    if (found.keys.back().second > kKeySizeMax) found.taken = false;
  }
  return found;
}

struct GetLineComparison {
  bool taken = false;
  std::string difference;  // empty: none
};

// A line that is taken must have the keys that framing and parsing find, and be one message. One
// that is not taken and yet has keys of a get or gets line to its end is a difference too, unless
// it is long.
inline GetLineComparison compare_get_line(const std::string& payload, uint32_t skew) {
  const LineKeys found = split_get_line(payload, skew);
  std::vector<uint8_t> input(payload.begin(), payload.end());
  std::vector<Frame> frames(payload.size() + 1);
  FrameState state = {};
  const FrameResult framed = frame_datagram(state, {1 << 20, UINT32_MAX, true, kProtocolAuto},
                                            {input.data(), input.size()}, 0, 0, frames.data(),
                                            static_cast<uint32_t>(frames.size()));
  frames.resize(framed.count);
  GetLineComparison result;
  result.taken = found.taken;
  bool is_get_line = framed.end == FrameEnd::kClose && !frames.empty();
  LineKeys theirs;
  for (const Frame& frame : frames) {
    Request request;
    parse_request(frame, input.data(), request);
    const bool is_last = &frame == &frames.back();
    constexpr uint32_t kKnown = kReturnValue | kReturnCas | kLastKey;
    if (frame.kind != FrameKind::kTextKey || request.op != Op::kGet ||
        (request.bits & ~kKnown) != 0 || ((request.bits & kLastKey) != 0) != is_last) {
      is_get_line = false;
      break;
    }
    theirs.with_cas = (request.bits & kReturnCas) != 0;
    theirs.keys.emplace_back(request.key_offset, request.key_size);
  }
  if (found.taken != is_get_line) {
    const bool may_differ = !found.taken && payload.size() >= kLineSizeMax;
    if (!may_differ) result.difference = found.taken ? "only split takes it" : "only framing does";
  } else if (found.taken && found.keys != theirs.keys) {
    result.difference = "keys";
  } else if (found.taken && found.with_cas != theirs.with_cas) {
    result.difference = "gets";
  }
  return result;
}

}  // namespace warpcache::protocol::testing
