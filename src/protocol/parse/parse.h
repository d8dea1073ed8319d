// SPDX-License-Identifier: Apache-2.0
//
// Turns frames into Requests, for every protocol.
#pragma once

#include "base/bytes.h"
#include "base/hd.h"
#include "base/mem.h"
#include "protocol/binary.h"
#include "protocol/framing/frame_types.h"
#include "protocol/message.h"
#include "protocol/parse/meta.h"
#include "protocol/parse/text.h"

namespace warpcache::protocol {

namespace parse_detail {

WC_HD inline void set_body(const Frame& frame, Request& request) {
  request.value_offset = frame.offset + frame.head_size;
  request.value_size = frame.body_size;
}

// Parses the line of a refused storage command, text or meta.
WC_HD inline void parse_refused_line(const uint8_t* base, Bytes head, Request& request) {
  if (head[0] == 'm') return parse_meta_line(base, head, true, request);
  parse_text_store(base, head, request);
}

// Sets the error of a refused storage command. A fault in its line takes precedence over the reason
// of the refusal.
WC_HD inline void set_refusal(const Frame& frame, Request& request) {
  if (request.op == Op::kInvalid) return;
  request.status = static_cast<Status>(frame.detail);
  request.value_size = frame.body_size;
  if (request.status != Status::kTooLarge && request.status != Status::kOutOfMemory &&
      request.status != Status::kOverShare) {
    return;
  }
  const bool plain_set = request.op == Op::kSet && (request.bits & kCasCompare) == 0;
  const bool binary_set = request.protocol == Protocol::kBinary &&
                          (request.binary_opcode == kOpSet || request.binary_opcode == kOpSetQ);
  if (plain_set || binary_set || request.protocol == Protocol::kMeta) request.bits |= kDropOld;
}

// The host has tried the short parsers of usual lines before parse_message(); a device, which has
// the code only once, tries them there.
#if defined(__CUDA_ARCH__)
inline constexpr bool kUsualIsTried = false;
#else
inline constexpr bool kUsualIsTried = true;
#endif

// REQUIRES: `request` is empty.
WC_HD inline void parse_message(const Frame& frame, uint8_t* base, Request& request) {
  const Bytes head = {base + frame.offset, frame.head_size};
  switch (frame.kind) {
    case FrameKind::kTextKey:
      return parse_text_key(frame, request);
    case FrameKind::kTextLine:
      return parse_text_line(base, head, request);
    case FrameKind::kMetaLine:
      if (frame.detail == 0) {
        parse_meta_line(base, head, false, request);
      } else if (kUsualIsTried || !parse_showing_get(base, frame, request)) {
        parse_usual_meta(base, frame, request);
      }
      break;
    case FrameKind::kTextStore:
      if (kUsualIsTried || frame.detail == 0 || !parse_usual_set(base, frame, request)) {
        parse_text_store(base, head, request);
      }
      return set_body(frame, request);
    case FrameKind::kMetaStore:
      if (frame.detail != 0) {
        parse_usual_meta(base, frame, request);
      } else {
        parse_meta_line(base, head, true, request);
      }
      set_body(frame, request);
      break;
    case FrameKind::kRefusedStore:
      parse_refused_line(base, head, request);
      set_refusal(frame, request);
      break;
    case FrameKind::kBinary:
      parse_binary_head(base, frame.offset, request);
      if (frame.body_size != 0 || request.op != Op::kStats) set_body(frame, request);
      return;
    case FrameKind::kRefusedBinary:
      parse_binary_head(base, frame.offset, request);
      return set_refusal(frame, request);
    case FrameKind::kInvalidBinary:
      return parse_binary_invalid(base, frame, request);
    case FrameKind::kInvalid:
      return make_invalid(request, static_cast<Status>(frame.detail));
  }
  if ((request.bits & kKeyIsBase64) != 0 && request.op != Op::kInvalid) decode_key(base, request);
}

}  // namespace parse_detail

// Fills `request` from `frame`. Cannot fail: op and status report a fault in the message. Decodes a
// base64 key in place, so a frame can be parsed only once.
WC_HD inline void parse_request(const Frame& frame, uint8_t* base, Request& request) {
  set_zero(request);
  if (WC_LIKELY(frame.kind == FrameKind::kTextKey)) return parse_text_key(frame, request);
  if (parse_detail::kUsualIsTried && frame.detail != 0) {
    if (frame.kind == FrameKind::kMetaLine && parse_showing_get(base, frame, request)) return;
    if (frame.kind == FrameKind::kTextStore && parse_usual_set(base, frame, request)) {
      return parse_detail::set_body(frame, request);
    }
  }
  parse_detail::parse_message(frame, base, request);
}

}  // namespace warpcache::protocol
