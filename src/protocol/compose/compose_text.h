// SPDX-License-Identifier: Apache-2.0
//
// Replies of the classic text protocol.
#pragma once

#include "base/mem.h"
#include "base/number.h"
#include "protocol/compose/error_text.h"
#include "protocol/message.h"
#include "protocol/version.h"

namespace warpcache::protocol {

inline constexpr uint32_t kTextLineMax = 96;        // any reply except VALUE
inline constexpr uint32_t kTextValueFrameMax = 64;  // VALUE line without its key, CRLF and END

WC_HD inline bool text_is_silent(const Request& request) {
  return (request.bits & kNoReply) != 0 || request.op == Op::kQuit;
}

WC_HD inline bool text_carries_value(const Request& request, const Result& result) {
  return request.op == Op::kGet && result.outcome == Outcome::kHit;
}

WC_HD inline uint32_t text_bound(const Request& request, const Result& result) {
  if (text_carries_value(request, result)) return kTextValueFrameMax + request.key_size;
  return kTextLineMax;
}

WC_HD inline uint8_t* put_crlf(uint8_t* out) {
  out[0] = '\r';
  out[1] = '\n';
  return out + 2;
}

// Writes the error line of the text and meta protocols.
WC_HD inline uint8_t* put_error_line(Op op, Status status, uint8_t* out) {
  return put_crlf(put(out, error_text(op, status)));
}

namespace text_detail {

// Without its line end.
WC_HD inline uint8_t* put_value_words(Bytes key, uint32_t client_flags, uint32_t value_size,
                                      uint8_t* out) {
  out = put(out, "VALUE ");
  out = put_short(out, key);
  *out++ = ' ';
  out = format_u64(client_flags, out);
  *out++ = ' ';
  return format_u64(value_size, out);
}

WC_HD inline uint8_t* put_value_line(const Request& request, const Result& result,
                                     const uint8_t* input, uint8_t* out) {
  out = put_value_words({input + request.key_offset, request.key_size}, result.client_flags,
                        result.value_size, out);
  if ((request.bits & kReturnCas) != 0) {
    *out++ = ' ';
    out = format_u64(result.cas, out);
  }
  return put_crlf(out);
}

}  // namespace text_detail

// A get that shows value and flags only.
WC_HD inline bool is_plain_get(const Request& request) {
  return request.protocol == Protocol::kText && request.op == Op::kGet &&
         (request.bits & ~uint32_t{kLastKey}) == kReturnValue;
}

// Its reply to a hit, as compose_text_head(), the value and compose_text_tail() make it.
WC_HD inline uint8_t* compose_plain_hit(const Request& request, Bytes key, uint32_t client_flags,
                                        Bytes value, uint8_t* out) {
  const auto size = static_cast<uint32_t>(value.size);
  out = put_crlf(text_detail::put_value_words(key, client_flags, size, out));
  out = put_crlf(put_often_short(out, value));
  return (request.bits & kLastKey) != 0 ? put(out, "END\r\n") : out;
}

WC_HD inline uint8_t* compose_text_head(const Request& request, const Result& result,
                                        const uint8_t* input, uint8_t* out) {
  switch (result.outcome) {
    case Outcome::kHit:
      return text_detail::put_value_line(request, result, input, out);
    case Outcome::kMiss:
      return out;
    case Outcome::kStored:
      return put(out, "STORED\r\n");
    case Outcome::kNotStored:
      return put(out, "NOT_STORED\r\n");
    case Outcome::kExists:
      return put(out, "EXISTS\r\n");
    case Outcome::kNotFound:
      return put(out, "NOT_FOUND\r\n");
    case Outcome::kDeleted:
      return put(out, "DELETED\r\n");
    case Outcome::kTouched:
      return put(out, "TOUCHED\r\n");
    case Outcome::kNumber:
      return put_crlf(format_u64(result.number, out));
    case Outcome::kOk:
      return put(out, "OK\r\n");
    case Outcome::kVersion:
      return put_crlf(put(put(out, "VERSION "), server_version()));
    case Outcome::kNoop:
      return put(out, "MN\r\n");
    case Outcome::kError:
      break;
  }
  return put_error_line(request.op, result.status, out);
}

WC_HD inline uint8_t* compose_text_tail(const Request& request, const Result& result,
                                        uint8_t* out) {
  if (request.op != Op::kGet || result.outcome == Outcome::kError) return out;
  if (result.outcome == Outcome::kHit) out = put_crlf(out);
  return (request.bits & kLastKey) != 0 ? put(out, "END\r\n") : out;
}

}  // namespace warpcache::protocol
