// SPDX-License-Identifier: Apache-2.0
//
// Replies of the meta commands. Flags are returned in the order of the request, followed by those
// that the server adds: Z, X, W.
#pragma once

#include "base/base64.h"
#include "base/mem.h"
#include "base/number.h"
#include "protocol/compose/compose_text.h"
#include "protocol/message.h"
#include "protocol/parse/words.h"

namespace warpcache::protocol {

// Each flag that is answered is a word of the request and occurs once there.
inline constexpr uint32_t kMetaAnsweredFlagsMax = 9;
inline constexpr uint32_t kMetaNumberFlagMax = 22;  // blank, letter, number
inline constexpr uint32_t kMetaFrameMax = 128;      // code and size, opaque, Z X W, number of ma
inline constexpr uint32_t kMetaDebugMax = 160;      // the line of me without its key

// An mg with the CAS id of the stored item gets no value: the client has it already.
WC_HD inline bool meta_carries_value(const Request& request, const Result& result) {
  if (request.op != Op::kGet || result.outcome != Outcome::kHit) return false;
  if ((request.bits & kReturnValue) == 0) return false;
  return (request.bits & kCasCompare) == 0 || request.cas_compare != result.cas;
}

WC_HD inline bool meta_is_silent(const Request& request, const Result& result) {
  if ((request.bits & kQuiet) == 0) return false;
  switch (result.outcome) {
    case Outcome::kMiss:
      return request.op == Op::kGet;
    case Outcome::kStored:
    case Outcome::kDeleted:
    case Outcome::kNumber:
      return true;
    default:
      return false;
  }
}

WC_HD inline uint32_t meta_bound(const Request& request) {
  const uint32_t key = static_cast<uint32_t>(base64_size(request.key_size)) + 4;
  if (request.op == Op::kMetaDebug) return kMetaDebugMax + key;
  const uint32_t words = (uint32_t{request.meta_size} + 1) / 2;
  const uint32_t flags = words < kMetaAnsweredFlagsMax ? words : kMetaAnsweredFlagsMax;
  return kMetaFrameMax + key + flags * kMetaNumberFlagMax;
}

namespace meta_detail {

WC_HD inline uint8_t* put_flag(uint8_t flag, uint8_t* out) {
  out[0] = ' ';
  out[1] = flag;
  return out + 2;
}

WC_HD inline uint8_t* put_number(uint8_t flag, int64_t number, uint8_t* out) {
  return format_i64(number, put_flag(flag, out));
}

WC_HD inline uint8_t* put_cas(uint64_t cas, uint8_t* out) {
  return format_u64(cas, put_flag('c', out));
}

WC_HD inline uint8_t* put_key(const Request& request, const uint8_t* input, bool binary,
                              uint8_t* out) {
  const Bytes key = {input + request.key_offset, request.key_size};
  out = put_flag('k', out);
  if (!binary) return put_short(out, key);
  return put_flag('b', base64_encode(key, out));
}

// A flag that shows the item's state and that only mg answers.
WC_HD inline uint8_t* put_read_flag(uint8_t flag, const Result& result, uint8_t* out) {
  switch (flag) {
    case 's':
      return put_number(flag, result.value_size, out);
    case 'f':
      return put_number(flag, result.client_flags, out);
    case 'l':
      return put_number(flag, result.idle, out);
    case 'h':
      return put_number(flag, (result.bits & kHitBefore) != 0 ? 1 : 0, out);
    default:
      return out;
  }
}

// Writes the answer to one flag of the request; most flags have none.
WC_HD inline uint8_t* put_answer(const Request& request, const Result& result, const uint8_t* input,
                                 Bytes word, uint8_t* out) {
  const uint8_t flag = word.data[0];
  const bool hit = result.outcome == Outcome::kHit;
  const bool number = result.outcome == Outcome::kNumber;
  const bool stores = request.op != Op::kGet && request.op != Op::kDelete &&
                      request.op != Op::kIncr && request.op != Op::kDecr;
  switch (flag) {
    case 'O':
      *out++ = ' ';
      return put(out, word);
    case 'k': {
      // A found item's key is shown in the form in which it was stored; else as in the request.
      const bool binary =
          hit ? (result.bits & kItemKeyIsBinary) != 0 : (request.bits & kKeyIsBase64) != 0;
      return put_key(request, input, binary, out);
    }
    case 'c':
      return hit || number || stores ? put_cas(result.cas, out) : out;
    case 't':
      return hit || number ? put_number(flag, result.ttl, out) : out;
    case 's':
      if (!stores) break;
      return put_number(
          flag, result.outcome == Outcome::kStored ? result.value_size : request.value_size, out);
    default:
      break;
  }
  return hit ? put_read_flag(flag, result, out) : out;
}

WC_HD inline uint8_t* put_answers(const Request& request, const Result& result,
                                  const uint8_t* input, uint8_t* out) {
  Words words({input + request.meta_offset, request.meta_size});
  Bytes word;
  while (words.next(word)) out = put_answer(request, result, input, word, out);
  return out;
}

WC_HD inline uint8_t* put_debug_line(const Request& request, const Result& result,
                                     const uint8_t* input, uint8_t* out) {
  const Bytes key = {input + request.key_offset, request.key_size};
  out = put(out, "ME ");
  out = (result.bits & kItemKeyIsBinary) != 0 ? base64_encode(key, out) : put(out, key);
  out = format_i64(result.ttl, put(out, " exp="));
  out = format_u64(result.idle, put(out, " la="));
  out = format_u64(result.cas, put(out, " cas="));
  out = put(out, " fetch=");
  out = (result.bits & kHitBefore) != 0 ? put(out, "yes") : put(out, "no");
  // There are no slab classes: all items are in class 1.
  out = format_u64(result.item_size, put(out, " cls=1 size="));
  return put_crlf(out);
}

// Writes the reply's two-letter code, and the size of the value if one follows.
WC_HD inline uint8_t* put_code(const Request& request, const Result& result, uint8_t* out) {
  switch (result.outcome) {
    case Outcome::kMiss:
      return put(out, "EN");
    case Outcome::kNotStored:
      return put(out, "NS");
    case Outcome::kExists:
      return put(out, "EX");
    case Outcome::kNotFound:
      return put(out, "NF");
    case Outcome::kNumber:
      if ((request.bits & kReturnValue) == 0) break;
      return format_u64(decimal_size(result.number), put(out, "VA "));
    default:
      if (!meta_carries_value(request, result)) break;
      return format_u64(result.value_size, put(out, "VA "));
  }
  return put(out, "HD");
}

}  // namespace meta_detail

WC_HD inline uint8_t* compose_meta_head(const Request& request, const Result& result,
                                        const uint8_t* input, uint8_t* out) {
  if (result.outcome == Outcome::kNoop) return put(out, "MN\r\n");
  if (result.outcome == Outcome::kError) return put_error_line(request.op, result.status, out);
  if (request.op == Op::kMetaDebug) {
    if (result.outcome != Outcome::kHit) return put(out, "EN\r\n");
    return meta_detail::put_debug_line(request, result, input, out);
  }
  out = meta_detail::put_code(request, result, out);
  if ((request.bits & kAnswersFlags) != 0) {
    out = meta_detail::put_answers(request, result, input, out);
  }
  if (result.outcome == Outcome::kHit) {
    if ((result.bits & kAlreadySent) != 0) out = meta_detail::put_flag('Z', out);
    if ((result.bits & kStale) != 0) out = meta_detail::put_flag('X', out);
    if ((result.bits & kWon) != 0) out = meta_detail::put_flag('W', out);
  }
  out = put_crlf(out);
  if (result.outcome == Outcome::kNumber && (request.bits & kReturnValue) != 0) {
    out = put_crlf(format_u64(result.number, out));
  }
  return out;
}

WC_HD inline uint8_t* compose_meta_tail(const Request& request, const Result& result,
                                        uint8_t* out) {
  return meta_carries_value(request, result) ? put_crlf(out) : out;
}

// An mg that changes nothing. The replies below say nothing of marks that an item may have; else
// they are what compose_meta_head(), the value and compose_meta_tail() make.
WC_HD inline bool is_plain_meta_get(const Request& request) {
  constexpr uint32_t kAllowed = kQuiet | kReturnValue | kAnswersFlags;
  return request.protocol == Protocol::kMeta && request.op == Op::kGet &&
         (request.bits & ~kAllowed) == 0;
}

// REQUIRES: is_plain_meta_get().
WC_HD inline bool shows_value_only(const Request& request) {
  return (request.bits & ~uint32_t{kQuiet}) == kReturnValue;
}

// A hit of an mg that shows the value only.
WC_HD inline uint8_t* compose_meta_value(Bytes value, uint8_t* out) {
  out = put_crlf(format_u64(value.size, put(out, "VA ")));
  return put_crlf(put_often_short(out, value));
}

// A hit of any plain mg. `result` need not have the value.
WC_HD inline uint8_t* compose_plain_meta_hit(const Request& request, const Result& result,
                                             const uint8_t* input, Bytes value, uint8_t* out) {
  const bool shows_value = (request.bits & kReturnValue) != 0;
  out = shows_value ? format_u64(value.size, put(out, "VA ")) : put(out, "HD");
  out = put_crlf(meta_detail::put_answers(request, result, input, out));
  return shows_value ? put_crlf(put_often_short(out, value)) : out;
}

WC_HD inline uint8_t* compose_plain_meta_miss(const Request& request, const uint8_t* input,
                                              uint8_t* out) {
  if ((request.bits & kQuiet) != 0) return out;
  out = put(out, "EN");
  if ((request.bits & kAnswersFlags) != 0) {
    Result miss = {};
    miss.outcome = Outcome::kMiss;
    out = meta_detail::put_answers(request, miss, input, out);
  }
  return put_crlf(out);
}

}  // namespace warpcache::protocol
