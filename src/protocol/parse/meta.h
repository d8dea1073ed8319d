// SPDX-License-Identifier: Apache-2.0
//
// Parses the meta commands mg ms md ma mn me. As in memcached, every command accepts every flag and
// uses those that it knows.
#pragma once

#include <cstdint>

#include "base/base64.h"
#include "base/number.h"
#include "protocol/framing/frame_types.h"
#include "protocol/message.h"
#include "protocol/parse/text.h"
#include "protocol/parse/words.h"

namespace warpcache::protocol {

inline constexpr uint32_t kMetaWordsMax = 20;        // words of a line: command, key and flags
inline constexpr uint32_t kOpaqueTokenSizeMax = 32;  // bytes of the O flag, its letter included

// Whether a word can be a flag. A line with other words among its flags is refused before anything
// else is checked.
WC_HD inline bool may_be_flag(uint8_t first) {
  return (first >= 'A' && first <= 'z') || (first >= '0' && first <= '9');
}

namespace meta_detail {

// The bit of a letter in Flags::seen[1].
WC_HD constexpr uint64_t letter_bit(char letter) { return uint64_t{1} << (letter & 63); }

// The flags that the reply repeats with a value.
inline constexpr uint64_t kAnswered = letter_bit('O') | letter_bit('c') | letter_bit('f') |
                                      letter_bit('h') | letter_bit('k') | letter_bit('l') |
                                      letter_bit('s') | letter_bit('t');

// The flags of a line, before the command uses them.
struct Flags {
  Bytes key;
  uint64_t seen[2] = {0, 0};  // by character
  uint32_t key_size = 0;      // decoded
  uint8_t mode = 0;
  bool key_binary = false;
  bool opaque_too_long = false;
  bool failed = false;
  Status error = Status::kBadFormat;

  WC_HD void fail(Status status) {
    failed = true;
    error = status;
  }
  WC_HD bool has(uint8_t flag) const { return (seen[flag >> 6] >> (flag & 63) & 1) != 0; }
};

// Reads one flag. False: stop; the rest of the line is not read.
WC_HD inline bool take_flag(Bytes word, Flags& flags, Request& request) {
  const uint8_t flag = word.data[0];
  if (flag >= 127 || flags.has(flag)) {
    flags.fail(Status::kDuplicateFlag);
    return false;
  }
  flags.seen[flag >> 6] |= uint64_t{1} << (flag & 63);
  const Bytes token = word.from(1);
  switch (flag) {
    case 'b':
      flags.key_binary = true;
      flags.key_size = static_cast<uint32_t>(base64_decode(flags.key, nullptr));
      if (flags.key_size == 0) flags.fail(Status::kBadKeyEncoding);
      break;
    case 'N':
      if (!parse_i32_strict(token, request.vivify_exptime)) flags.fail(Status::kBadToken);
      request.bits |= kVivify;
      if (flags.has('t')) request.bits |= kTtlBeforeTouch;
      break;
    case 'T':
      if (!parse_i32_strict(token, request.exptime)) flags.fail(Status::kBadToken);
      request.bits |= kTouchBit;
      if (flags.has('t')) request.bits |= kTtlBeforeTouch;
      break;
    case 'R':
      if (!parse_i32_strict(token, request.recache_ttl)) flags.fail(Status::kBadToken);
      request.bits |= kRecache;
      break;
    case 'F':
      // memcached sets no error for this flag: an earlier one stays.
      if (!parse_u32_strict(token, request.client_flags)) flags.failed = true;
      break;
    case 'C':
      if (!parse_u64_strict(token, request.cas_compare)) flags.fail(Status::kBadToken);
      request.bits |= kCasCompare;
      break;
    case 'E':
      if (!parse_u64_strict(token, request.cas_set)) flags.fail(Status::kBadToken);
      request.bits |= kCasSet;
      break;
    case 'J':
      if (!parse_u64_strict(token, request.initial)) flags.fail(Status::kBadInitial);
      break;
    case 'D':
      if (!parse_u64_strict(token, request.delta)) flags.fail(Status::kBadMetaDelta);
      break;
    case 'M':
      flags.mode = token.empty() ? static_cast<uint8_t>(' ') : token.data[0];
      break;
    case 'O':
      flags.opaque_too_long = word.size > kOpaqueTokenSizeMax;
      break;
    case 'v':
      request.bits |= kReturnValue;
      break;
    case 'u':
      request.bits |= kNoBump;
      break;
    case 'q':
      request.bits |= kQuiet;
      break;
    case 'x':
      request.bits |= kDropValue;
      break;
    case 'I':
      request.bits |= kInvalidate;
      break;
    case 'P':
    case 'L':
    case 'k':
    case 's':
    case 't':
    case 'c':
    case 'f':
    case 'l':
    case 'h':
      break;
    default:
      flags.fail(Status::kBadFlag);
      return false;
  }
  return true;
}

WC_HD inline bool set_store_mode(uint8_t mode, Request& request) {
  switch (mode) {
    case 0:
    case 'S':
      request.op = Op::kSet;
      return true;
    case 'E':
      request.op = Op::kAdd;
      return true;
    case 'A':
      request.op = Op::kAppend;
      return true;
    case 'P':
      request.op = Op::kPrepend;
      return true;
    case 'R':
      request.op = Op::kReplace;
      return true;
    default:
      return false;
  }
}

WC_HD inline bool set_arithmetic_mode(uint8_t mode, Request& request) {
  switch (mode) {
    case 0:
    case 'I':
    case '+':
      request.op = Op::kIncr;
      return true;
    case 'D':
    case '-':
      request.op = Op::kDecr;
      return true;
    default:
      return false;
  }
}

// Sets the op. Returns the fault in the flags, or kOk.
WC_HD inline Status finish(Command command, const Flags& flags, Request& request) {
  if (flags.failed) return command == Command::kMetaArithmetic ? Status::kBadFlags : flags.error;
  switch (command) {
    case Command::kMetaGet:
      request.op = Op::kGet;
      break;
    case Command::kMetaSet:
      if (!set_store_mode(flags.mode, request)) return Status::kBadSetMode;
      // For ms, E0 means: the store chooses the id. The other commands use 0 as the id.
      if (request.cas_set == 0) request.bits &= ~kCasSet;
      break;
    case Command::kMetaDelete:
      request.op = Op::kDelete;
      break;
    default:
      if (!set_arithmetic_mode(flags.mode, request)) return Status::kBadArithmeticMode;
      break;
  }
  return flags.opaque_too_long ? Status::kBadOpaque : Status::kOk;
}

// Reads the remaining `words` as flags. False: one of them is not a flag, so the whole line is
// malformed.
WC_HD inline bool read_flags(Words words, uint32_t words_before, Flags& flags, Request& request) {
  uint32_t count = words_before;
  bool going = flags.key.size <= kKeySizeMax;
  if (!going) flags.fail(Status::kBadFormat);
  Bytes word;
  while (count < kWordsMax && words.next(word)) {
    ++count;
    if (!may_be_flag(word.data[0])) return false;
    if (going) going = take_flag(word, flags, request);
  }
  if (count > kMetaWordsMax && flags.key.size <= kKeySizeMax) flags.fail(Status::kTooManyFlags);
  return true;
}

WC_HD inline void set_key(const uint8_t* base, const Flags& flags, bool binary, Request& request) {
  request.key_offset = text_detail::offset_of(base, flags.key);
  request.key_size = static_cast<uint8_t>(flags.key.size);
  if (!binary) return;
  request.bits |= kKeyIsBase64;
  request.opaque = request.key_size;
  request.key_size = static_cast<uint8_t>(flags.key_size);
}

// me: its only flag is b, which must be the first one.
WC_HD inline void finish_debug(const uint8_t* base, const Flags& flags, Bytes meta,
                               Request& request) {
  Words words(meta);
  Bytes word;
  const bool binary = words.next(word) && equal(word, "b");
  if (flags.key.size > kKeySizeMax || (binary && flags.key_size == 0)) {
    return make_invalid(request, Status::kBadFormat);
  }
  request.op = Op::kMetaDebug;
  request.bits = 0;
  set_key(base, flags, binary, request);
}

}  // namespace meta_detail

namespace meta_detail {

// Reads the flags of a line, `words`, whose key is known, and sets everything else.
WC_HD inline void parse_flags(const uint8_t* base, Command command, Words words,
                              uint32_t words_before, Flags& flags, Request& request) {
  const Bytes meta = words.rest();
  request.delta = 1;
  if (!read_flags(words, words_before, flags, request)) {
    return make_invalid(request, Status::kBadFormat);
  }
  if (command == Command::kMetaDebug) return finish_debug(base, flags, meta, request);

  const Status status = finish(command, flags, request);
  if (status != Status::kOk) return make_invalid(request, status);
  set_key(base, flags, flags.key_binary, request);
  if ((flags.seen[1] & kAnswered) != 0) request.bits |= kAnswersFlags;
  request.meta_offset = text_detail::offset_of(base, meta);
  request.meta_size = static_cast<uint16_t>(meta.size);
}

}  // namespace meta_detail

// Parses the line of a meta command. With kKeyIsBase64 key_size is that of the decoded key, but
// only decode_key() decodes it. Pure. REQUIRES: the line starts with the command.
WC_HD inline void parse_meta_line(const uint8_t* base, Bytes head, bool has_body,
                                  Request& request) {
  request.protocol = Protocol::kMeta;
  const Command command = words_detail::meta_command(head[1]);
  if (command == Command::kMetaNoop) {
    request.op = Op::kNoop;
    if (head.size < kLineSizeMin) make_invalid(request, Status::kBadFormat);
    return;
  }
  meta_detail::Flags flags;
  Words words(without_line_end(head).from(2));
  Bytes word;
  bool valid = words.next(flags.key);
  const bool store = command == Command::kMetaSet;
  // An ms without a body is one that frame() refused: a bad length, or too few words.
  if (store) valid = has_body && words.next(word);
  if (!valid) {
    request.delta = 1;
    return make_invalid(request, Status::kBadFormat);
  }
  meta_detail::parse_flags(base, command, words, store ? 3 : 2, flags, request);
}

namespace meta_detail {

// The flags of an mg that change nothing and need no number: they say what the reply shows, and
// when there is none.
inline constexpr uint64_t kShowing = kAnswered | letter_bit('q') | letter_bit('v');

// Reads words of one letter, and opaques, with a blank before each. Returns their letters as bits;
// 0: there is something else, or nothing.
WC_HD inline uint64_t read_showing_flags(const uint8_t* at, const uint8_t* end) {
  constexpr uint32_t kFirst = 64;  // of the characters that letter_bit() tells apart
  uint64_t left = kShowing;
  while (end - at >= 2) {
    const uint32_t place = uint32_t{at[1]} - kFirst;
    if (*at != ' ' || place > 63 || (left >> place & 1) == 0) return 0;
    left ^= uint64_t{1} << place;
    at += 2;
    if (place != 'O' - kFirst) continue;
    const uint8_t* const token = at;
    while (at != end && *at != ' ') ++at;
    if (at - token >= static_cast<int32_t>(kOpaqueTokenSizeMax)) return 0;
  }
  return at == end ? kShowing ^ left : 0;
}

}  // namespace meta_detail

// Parses an mg that changes nothing, whose key frame() has found and whose flags are words of one
// letter or opaques, as parse_meta_line() does. False: the line is another one. REQUIRES:
// frame.detail is the size of the key, the line is an mg.
WC_HD inline bool parse_showing_get(const uint8_t* base, const Frame& frame, Request& request) {
  constexpr uint32_t kCommand = 3;  // bytes, with the blank
  const uint32_t key_end = frame.offset + kCommand + frame.detail;
  const uint32_t line_end = frame.offset + frame.head_size - 2;
  const uint64_t seen = meta_detail::read_showing_flags(base + key_end, base + line_end);
  if (seen == 0) return false;
  request.protocol = Protocol::kMeta;
  request.op = Op::kGet;
  request.bits = ((seen & meta_detail::letter_bit('v')) != 0 ? uint32_t{kReturnValue} : 0) |
                 ((seen & meta_detail::letter_bit('q')) != 0 ? uint32_t{kQuiet} : 0) |
                 ((seen & meta_detail::kAnswered) != 0 ? uint32_t{kAnswersFlags} : 0);
  request.delta = 1;
  request.key_offset = frame.offset + kCommand;
  request.key_size = frame.detail;
  request.meta_offset = key_end + 1;
  request.meta_size = static_cast<uint16_t>(line_end - key_end - 1);
  return true;
}

// Parses a line "mg <key> <flags>" or "ms <key> <bytes>" whose key frame() has found, as
// parse_meta_line() does. REQUIRES: frame.detail is the size of the key.
WC_HD inline void parse_usual_meta(const uint8_t* base, const Frame& frame, Request& request) {
  constexpr uint32_t kCommand = 3;  // bytes, with the blank
  const uint32_t key_end = frame.offset + kCommand + frame.detail;
  const uint32_t line_end = frame.offset + frame.head_size - 2;
  if (frame.kind != FrameKind::kMetaStore) {
    request.protocol = Protocol::kMeta;
    meta_detail::Flags flags;
    flags.key = {base + frame.offset + kCommand, frame.detail};
    const Words words({base + key_end, line_end - key_end});
    return meta_detail::parse_flags(base, Command::kMetaGet, words, 2, flags, request);
  }
  request.protocol = Protocol::kMeta;
  request.op = Op::kSet;
  request.delta = 1;
  request.key_offset = frame.offset + kCommand;
  request.key_size = frame.detail;
  request.meta_offset = line_end;
}

// Decodes a base64 key in place.
WC_HD inline void decode_key(uint8_t* base, const Request& request) {
  uint8_t* const key = base + request.key_offset;
  const size_t size = base64_decode({key, request.opaque}, key);
  WC_ASSERT(size == request.key_size);
}

}  // namespace warpcache::protocol
