// SPDX-License-Identifier: Apache-2.0
//
// frame() finds message boundaries in a byte stream or datagram. Everything after it relies on
// these boundaries: parse() never searches for a line end or a length. (Two parsers that disagree
// about a length allow request smuggling.) Beside it are fast paths for a whole datagram in the
// most frequent form: single_key/, get_line.h, and the NIC cache's program. They accept a part of
// what frame() accepts and leave all else to it: single_key/agreement_test.cc and tests/packets
// compare them.
//
// A stream gives the same frames however its bytes are divided over the calls.
#pragma once

#include "protocol/framing/frame_binary.h"
#include "protocol/framing/frame_text.h"
#include "protocol/framing/frame_types.h"
#include "protocol/framing/framer.h"

namespace warpcache::protocol {

// Frames `input`, which lies at `offset` in the batch's input and belongs to batch entry `entry`.
// REQUIRES: out_capacity > 0; the input starts with all bytes that the last call did not consume,
// followed by the new bytes.
WC_HD inline FrameResult frame(FrameState& state, const FrameLimits& limits, Bytes input,
                               uint32_t offset, uint32_t entry, Frame* out, uint32_t out_capacity);

// Frames the payload of one UDP datagram, after its 8-byte header. A message must be complete in
// its datagram; an unfinished one is answered with an error. `end` is kClose when all is framed.
// After kFull, call again with the rest and the same `state`, which is zero-initialised for the
// first call.
WC_HD inline FrameResult frame_datagram(FrameState& state, const FrameLimits& limits, Bytes payload,
                                        uint32_t offset, uint32_t entry, Frame* out,
                                        uint32_t out_capacity);

// Call when the body of `large` has been received; `line_end` is the body_end_size(large) bytes
// after it. Makes `large` a kRefusedStore if they are not CRLF.
WC_HD inline void frame_large_done(Frame& large, Bytes line_end);

// Refuses `large` because there is no space for its body (`why` is kOutOfMemory, kTooLarge or
// kOverShare).
// `received` bytes of body and line end have been taken; the next calls of frame() discard the
// rest.
WC_HD inline void frame_refuse_large(FrameState& state, Frame& large, Status why,
                                     uint32_t received = 0);

// Refuses a storage command that has been framed; `why` is the answer.
WC_HD inline void refuse_store(Frame& store, Status why);

namespace framing {

WC_HD inline bool is_binary(Framer& framer) {
  FrameState& state = framer.state();
  if (state.protocol == kProtocolAuto) state.protocol = framer.limits().protocol;
  if (state.protocol == kProtocolAuto) {
    const bool binary = framer.at()[0] == kBinaryRequestMagic;
    state.protocol = static_cast<uint8_t>(binary ? kProtocolBinary : kProtocolText);
  }
  return state.protocol == kProtocolBinary;
}

WC_HD inline FrameStep take_next(Framer& framer) {
  FrameState& state = framer.state();
  if (WC_UNLIKELY(state.swallow != 0)) {
    framer.pass_swallowed();
    return state.swallow == 0 ? FrameStep::kTaken : FrameStep::kMore;
  }
  if (WC_UNLIKELY(state.refused != 0)) return skip_refused(framer);
  if (framer.full()) return FrameStep::kNoSpace;
  if (WC_UNLIKELY(state.multiget != 0)) return take_keys(framer);
  return is_binary(framer) ? take_binary(framer) : take_text(framer);
}

// Takes messages until a step ends in another way than kTaken.
WC_HD inline FrameStep take_all(Framer& framer) {
  if (framer.state().closed != 0) return FrameStep::kClosed;
  FrameStep step = FrameStep::kTaken;
  while (step == FrameStep::kTaken && framer.left() != 0) step = take_next(framer);
  return step;
}

WC_HD inline FrameResult result_of(const Framer& framer, FrameEnd end) {
  FrameResult result;
  result.consumed = framer.consumed();
  result.count = framer.count();
  result.need = end == FrameEnd::kNeedMore ? framer.need() : 0;
  result.in_value = end == FrameEnd::kNeedMore && framer.in_value();
  result.end = end;
  result.large = framer.large();
  return result;
}

// Answers a message of which the datagram holds only a part.
WC_HD inline void refuse_unfinished(Framer& framer) {
  FrameState& state = framer.state();
  if (state.refused != 0) {
    framer.emit_status(framer.at(), 0, FrameKind::kInvalid, static_cast<Status>(state.refused));
    return;
  }
  if (state.swallow != 0 || (framer.left() == 0 && state.multiget == 0)) return;
  if (state.protocol != kProtocolBinary) {
    framer.emit_status(framer.at(), 0, FrameKind::kInvalid, Status::kBadFormat);
  } else if (framer.left() >= kBinaryHeaderSize) {
    framer.emit_status(framer.at(), kBinaryHeaderSize, FrameKind::kInvalidBinary,
                       Status::kInvalidArguments);
  }
}

}  // namespace framing

WC_HD inline FrameResult frame(FrameState& state, const FrameLimits& limits, Bytes input,
                               uint32_t offset, uint32_t entry, Frame* out, uint32_t out_capacity) {
  WC_DASSERT(out_capacity > 0);
  Framer framer(state, limits, input, offset, entry, out, out_capacity);
  switch (framing::take_all(framer)) {
    case FrameStep::kNoSpace:
      return framing::result_of(framer, FrameEnd::kFull);
    case FrameStep::kLarge:
      return framing::result_of(framer, FrameEnd::kLargeBody);
    case FrameStep::kClosed:
      return framing::result_of(framer, FrameEnd::kClose);
    default:
      return framing::result_of(framer, FrameEnd::kNeedMore);
  }
}

WC_HD inline FrameResult frame_datagram(FrameState& state, const FrameLimits& limits, Bytes payload,
                                        uint32_t offset, uint32_t entry, Frame* out,
                                        uint32_t out_capacity) {
  WC_DASSERT(out_capacity > 0);
  // A body that fits into a datagram is in the input, so none needs a reservation.
  FrameLimits inline_limits = limits;
  inline_limits.inline_body_max = UINT32_MAX;
  Framer framer(state, inline_limits, payload, offset, entry, out, out_capacity);
  const FrameStep step = framing::take_all(framer);
  if (step == FrameStep::kNoSpace) return framing::result_of(framer, FrameEnd::kFull);
  if (step == FrameStep::kMore) {
    // The error needs a Frame too.
    if (framer.full()) return framing::result_of(framer, FrameEnd::kFull);
    framing::refuse_unfinished(framer);
    framer.pass_to(framer.end());
  }
  state.closed = 1;
  return framing::result_of(framer, FrameEnd::kClose);
}

WC_HD inline void frame_large_done(Frame& large, Bytes line_end) {
  if (body_end_size(large) == 0) return;
  if (line_end.size == 2 && line_end[0] == '\r' && line_end[1] == '\n') return;
  large.kind = FrameKind::kRefusedStore;
  large.detail = static_cast<uint8_t>(Status::kBadDataChunk);
}

WC_HD inline void frame_refuse_large(FrameState& state, Frame& large, Status why,
                                     uint32_t received) {
  state.swallow = uint64_t{large.body_size} + body_end_size(large) - received;
  refuse_store(large, why);
}

WC_HD inline void refuse_store(Frame& store, Status why) {
  const bool binary = store.kind == FrameKind::kBinary;
  store.kind = binary ? FrameKind::kRefusedBinary : FrameKind::kRefusedStore;
  store.detail = static_cast<uint8_t>(why);
}

}  // namespace warpcache::protocol
