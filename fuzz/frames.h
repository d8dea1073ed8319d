// SPDX-License-Identifier: Apache-2.0
//
// Shared by the fuzz targets of the protocols: frames a stream in one piece and in several, parses
// each message and composes replies to it.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "base/assert.h"
#include "protocol/compose/compose.h"
#include "protocol/framing/frame.h"
#include "protocol/parse/parse.h"
#include "protocol/testing/messages.h"

namespace warpcache::fuzz {

// Bytes that control a target, taken from the end of its input, so that the front stays a message.
class Steering {
 public:
  Steering(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  uint32_t next() { return size_ == 0 ? 0 : data_[--size_]; }
  uint64_t next64() {
    uint64_t number = 0;
    for (int i = 0; i < 8; ++i) number = number << 8 | next();
    return number;
  }
  std::string rest() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const uint8_t* data_;
  size_t size_;
};

inline protocol::FrameLimits limits_of(Steering& steering, uint8_t protocol) {
  protocol::FrameLimits limits = protocol::testing::default_limits();
  const uint32_t choice = steering.next();
  limits.item_size_max = (choice & 1) != 0 ? 300 : 1 << 20;
  limits.inline_body_max = (choice & 2) != 0 ? 100 : 60 * 1024;
  limits.cas_enabled = (choice & 4) == 0;
  limits.protocol = protocol;
  return limits;
}

inline protocol::Result result_of(Steering& steering) {
  protocol::Result result = {};
  result.outcome = static_cast<protocol::Outcome>(
      steering.next() % (static_cast<uint32_t>(protocol::Outcome::kError) + 1));
  result.status = static_cast<Status>(steering.next() % static_cast<uint32_t>(Status::kDeferred));
  result.cas = steering.next64();
  result.number = steering.next64();
  result.value_size = static_cast<uint32_t>(steering.next64());
  result.client_flags = static_cast<uint32_t>(steering.next64());
  result.ttl = static_cast<int32_t>(steering.next64());
  result.idle = result.item_size = static_cast<uint32_t>(steering.next64());
  result.bits = static_cast<uint8_t>(steering.next());
  return result;
}

// `base` has `size` bytes.
inline void parse_and_compose(const protocol::Frame& frame, uint8_t* base, size_t size,
                              protocol::Result result) {
  protocol::Request request;
  protocol::parse_request(frame, base, request);
  WC_ASSERT(uint64_t{request.key_offset} + request.key_size <= size);
  WC_ASSERT(uint64_t{request.meta_offset} + request.meta_size <= size);
  if (request.status == Status::kOk) {
    WC_ASSERT(uint64_t{request.value_offset} + request.value_size <= size);
  }
  if (request.op <= protocol::Op::kTouch) {
    WC_ASSERT(request.key_size > 0 && request.key_size <= protocol::kKeySizeMax);
  }
  if (request.op == protocol::Op::kInvalid) result.outcome = protocol::Outcome::kError;
  // Only these show an item.
  const bool shows = request.op == protocol::Op::kGet || request.op == protocol::Op::kMetaDebug;
  if (result.outcome == protocol::Outcome::kHit && !shows) result.outcome = protocol::Outcome::kOk;
  // Exactly as large as the bound, so that sanitizers notice a write beyond it.
  const uint32_t bound = protocol::reply_bound(request, result);
  const auto out = std::make_unique<uint8_t[]>(bound);
  uint8_t* end = protocol::compose_head(request, result, base, out.get());
  end = protocol::compose_tail(request, result, base, end);
  WC_ASSERT(end - out.get() <= static_cast<ptrdiff_t>(bound));
}

// Frames a complete stream, and composes replies to its messages.
inline void run_whole(const std::string& bytes, const protocol::FrameLimits& limits, bool datagram,
                      const protocol::Result& result) {
  protocol::testing::HeapCopy input(bytes);
  protocol::FrameState state = {};
  protocol::Frame frames[16];
  uint32_t at = 0;
  for (size_t calls = 0;; ++calls) {
    WC_ASSERT(calls <= bytes.size() + 1);
    const Bytes rest = input.bytes().from(at);
    const protocol::FrameResult framed =
        datagram ? protocol::frame_datagram(state, limits, rest, at, 0, frames, 16)
                 : protocol::frame(state, limits, rest, at, 0, frames, 16);
    WC_ASSERT(framed.consumed <= rest.size);
    protocol::testing::check_usual_lines(frames, framed.count, limits, input.bytes(), false);
    for (uint32_t i = 0; i < framed.count; ++i) {
      parse_and_compose(frames[i], input.data(), bytes.size(), result);
    }
    at += framed.consumed;
    if (framed.end != protocol::FrameEnd::kFull) return;
  }
}

// Checks that the frames do not depend on how the stream is divided.
inline void check_cuts(const std::string& bytes, const protocol::FrameLimits& limits, size_t cut) {
  protocol::testing::Stream whole(limits, 64);
  whole.feed(bytes);
  protocol::testing::Stream halves(limits, 1);
  const size_t at = bytes.empty() ? 0 : cut % bytes.size();
  halves.feed(bytes.substr(0, at));
  halves.feed(bytes.substr(at));
  WC_ASSERT(halves.seen() == whole.seen());
  if (bytes.size() > 200) return;
  protocol::testing::Stream single(limits, 3);
  for (const char byte : bytes) single.feed(std::string(1, byte));
  WC_ASSERT(single.seen() == whole.seen());
}

inline void run_stream_target(const uint8_t* data, size_t size, uint8_t protocol,
                              const std::string& lead) {
  Steering steering(data, size);
  const protocol::FrameLimits limits = limits_of(steering, protocol);
  const size_t cut = steering.next() << 8 | steering.next();
  const protocol::Result result = result_of(steering);
  const std::string bytes = lead + steering.rest();
  run_whole(bytes, limits, false, result);
  check_cuts(bytes, limits, cut);
}

}  // namespace warpcache::fuzz
