// SPDX-License-Identifier: Apache-2.0
//
// Test support: streams that arrive in pieces of any size and are framed as a worker does it, and
// frames as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/testing/heap_copy.h"
#include "protocol/framing/frame.h"
#include "protocol/message.h"
#include "protocol/testing/usual.h"

namespace warpcache::protocol::testing {

using warpcache::base::testing::HeapCopy;
using warpcache::base::testing::text_of;

inline const std::string kLongKey(251, 'k');  // one byte too long

inline FrameLimits default_limits() { return {1024 * 1024, 64 * 1024, true, kProtocolAuto}; }

inline const char* name_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::kTextLine:
      return "line";
    case FrameKind::kTextStore:
      return "store";
    case FrameKind::kTextKey:
      return "key";
    case FrameKind::kMetaLine:
      return "meta";
    case FrameKind::kMetaStore:
      return "metastore";
    case FrameKind::kBinary:
      return "binary";
    case FrameKind::kInvalid:
      return "invalid";
    case FrameKind::kInvalidBinary:
      return "invalidbinary";
    case FrameKind::kRefusedStore:
      return "refused";
    case FrameKind::kRefusedBinary:
      return "refusedbinary";
  }
  return "?";
}

inline bool has_inline_body(const Frame& frame) {
  return frame.kind == FrameKind::kTextStore || frame.kind == FrameKind::kMetaStore ||
         frame.kind == FrameKind::kBinary;
}

// All fields of a frame except its offset: "kind<head>detail:body_size=body". The detail of a
// usual line, the size of its key, is left out: it says nothing that the line does not say, and a
// line whose body is large has none.
inline std::string describe(const Frame& frame, const uint8_t* base) {
  const bool line = frame.kind == FrameKind::kTextStore || frame.kind == FrameKind::kMetaStore ||
                    frame.kind == FrameKind::kMetaLine;
  std::string text = std::string(name_of(frame.kind)) + "<" +
                     text_of({base + frame.offset, frame.head_size}) + ">" +
                     std::to_string(line ? 0 : frame.detail);
  if (frame.body_size != 0) {
    text += ":" + std::to_string(static_cast<int32_t>(frame.body_size));
    if (has_inline_body(frame)) {
      text += "=" + text_of({base + frame.offset + frame.head_size, frame.body_size});
    }
  }
  return text;
}

// One stream and its reader.
class Stream {
 public:
  explicit Stream(const FrameLimits& limits, uint32_t capacity = 8)
      : limits_(limits), frames_(capacity) {}

  // Receives `bytes` and appends their frames to seen(); "close" follows the last one.
  void feed(const std::string& bytes) {
    pending_ += bytes;
    bool again = true;
    while (again && !closed_) again = receives_large_ ? receive_large() : step();
  }

  const std::vector<std::string>& seen() const { return seen_; }
  const std::string& pending() const { return pending_; }
  uint32_t need() const { return need_; }

  // The status that a request for a reservation gets.
  Status reservation = Status::kOk;

 private:
  bool step() {
    HeapCopy input(pending_);
    constexpr uint32_t kOffset = 0;
    const bool in_line = state_.multiget != 0;
    const FrameResult result = frame(state_, limits_, input.bytes(), kOffset, 3, frames_.data(),
                                     static_cast<uint32_t>(frames_.size()));
    WC_ASSERT(result.consumed <= pending_.size());
    WC_ASSERT(result.count <= frames_.size());
    for (uint32_t i = 0; i < result.count; ++i) {
      WC_ASSERT(frames_[i].entry == 3);
      check_bounds(frames_[i], input.bytes());
      seen_.push_back(describe(frames_[i], input.data()));
    }
    check_usual_lines(frames_.data(), result.count, limits_, input.bytes(), in_line);
    need_ = result.need;
    if (result.end == FrameEnd::kLargeBody) start_large(result, input);
    pending_.erase(0, result.consumed);
    if (result.end == FrameEnd::kClose) {
      closed_ = true;
      seen_.push_back("close");
    }
    return result.end == FrameEnd::kFull || result.end == FrameEnd::kLargeBody;
  }

  void check_bounds(const Frame& frame, Bytes input) const {
    const uint64_t body = has_inline_body(frame) ? frame.body_size : 0;
    WC_ASSERT(uint64_t{frame.offset} + frame.head_size + body <= input.size);
  }

  void start_large(const FrameResult& result, HeapCopy& input) {
    large_ = result.large;
    large_head_ = text_of({input.data() + large_.offset, large_.head_size});
    if (reservation == Status::kOk) {
      receives_large_ = true;
      return;
    }
    frame_refuse_large(state_, large_, reservation);
    large_.offset = 0;
    seen_.push_back(describe(large_, bytes_of(large_head_).data));
  }

  bool receive_large() {
    const uint64_t size = uint64_t{large_.body_size} + body_end_size(large_);
    if (pending_.size() < size) return false;
    frame_large_done(large_, bytes_of(pending_.substr(large_.body_size, body_end_size(large_))));
    const std::string whole = large_head_ + pending_.substr(0, large_.body_size);
    pending_.erase(0, size);
    large_.offset = 0;
    seen_.push_back(describe(large_, bytes_of(whole).data));
    receives_large_ = false;
    return true;
  }

  FrameLimits limits_;
  FrameState state_ = {};
  std::vector<Frame> frames_;
  std::vector<std::string> seen_;
  std::string pending_;
  std::string large_head_;
  Frame large_ = {};
  uint32_t need_ = 0;
  bool receives_large_ = false;
  bool closed_ = false;
};

// The frames of `bytes`, received in one piece.
inline std::vector<std::string> frames_of(const std::string& bytes,
                                          const FrameLimits& limits = default_limits()) {
  Stream stream(limits);
  stream.feed(bytes);
  return stream.seen();
}

// A message of the binary protocol.
inline std::string binary_request(uint8_t opcode, const std::string& extras, const std::string& key,
                                  const std::string& value, uint64_t cas = 0) {
  uint8_t header[24] = {0x80, opcode};
  store_big16(header + 2, static_cast<uint16_t>(key.size()));
  header[4] = static_cast<uint8_t>(extras.size());
  store_big32(header + 8, static_cast<uint32_t>(extras.size() + key.size() + value.size()));
  store_as(header + 12, uint32_t{0xa1b2c3d4});
  store_big64(header + 16, cas);
  return text_of({header, sizeof(header)}) + extras + key + value;
}

// `count` bytes of `value`, most significant first.
inline std::string big_endian(uint64_t value, int count) {
  std::string text;
  for (int i = count - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

}  // namespace warpcache::protocol::testing
