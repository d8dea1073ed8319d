// SPDX-License-Identifier: Apache-2.0
//
// Parses the classic text protocol. Accepts and refuses what memcached 1.6.45 does, with the same
// errors.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "base/number.h"
#include "protocol/framing/frame_types.h"
#include "protocol/message.h"
#include "protocol/parse/words.h"

namespace warpcache::protocol {

WC_HD inline void make_invalid(Request& request, Status status) {
  request.op = Op::kInvalid;
  request.status = status;
}

namespace text_detail {

inline constexpr uint32_t kWordsKept = 6;

struct Line {
  Bytes word[kWordsKept];
  Bytes last;
  Bytes text;          // without its line end
  uint32_t count = 0;  // words, up to kWordsMax
  bool too_short = false;
};

WC_HD inline Line split(Bytes text) {
  Line line;
  line.text = text;
  if (WC_LIKELY(text.size < 64)) {
    const WordMap map(blanks_of(text), text.size);
    for (uint64_t starts = map.starts; starts != 0 && line.count < kWordsMax;
         starts &= starts - 1) {
      const uint32_t start = lowest_bit(starts);
      line.last = {text.data + start, lowest_bit(map.blanks >> start)};
      if (line.count < kWordsKept) line.word[line.count] = line.last;
      ++line.count;
    }
    return line;
  }
  Words words(text);
  Bytes word;
  while (line.count < kWordsMax && words.next(word)) {
    if (line.count < kWordsKept) line.word[line.count] = word;
    line.last = word;
    ++line.count;
  }
  return line;
}

WC_HD inline bool ends_with_noreply(const Line& line) { return equal(line.last, "noreply"); }

// The offset of a part of the line in the input. REQUIRES: `base` is the input base.
WC_HD inline uint32_t offset_of(const uint8_t* base, Bytes part) {
  return static_cast<uint32_t>(part.data - base);
}

// The words after the command.
WC_HD inline Bytes arguments(const Line& line) {
  Words words(line.text);
  Bytes command;
  (void)words.next(command);
  return words.rest();
}

WC_HD inline void set_words(const uint8_t* base, Bytes words, Request& request) {
  request.value_offset = offset_of(base, words);
  request.value_size = static_cast<uint32_t>(words.size);
}

// Reads the key, the second word. False: it is too long.
WC_HD inline bool take_key(const uint8_t* base, const Line& line, Request& request) {
  const Bytes key = line.word[1];
  if (key.size > kKeySizeMax) {
    make_invalid(request, Status::kBadFormat);
    return false;
  }
  request.key_offset = offset_of(base, key);
  request.key_size = static_cast<uint8_t>(key.size);
  return true;
}

WC_HD inline Op store_op(Command command) {
  switch (command) {
    case Command::kAdd:
      return Op::kAdd;
    case Command::kReplace:
      return Op::kReplace;
    case Command::kAppend:
      return Op::kAppend;
    case Command::kPrepend:
      return Op::kPrepend;
    default:
      return Op::kSet;
  }
}

// set <key> <flags> <exptime> <bytes> [<cas>] [noreply]; frame() has checked that there are at
// least five words.
WC_HD inline void parse_store(const uint8_t* base, const Line& line, Command command,
                              Request& request) {
  if (ends_with_noreply(line)) request.bits |= kNoReply;
  if (!take_key(base, line, request)) return;
  bool valid =
      parse_u32(line.word[2], request.client_flags) && parse_i32(line.word[3], request.exptime);
  if (valid && command == Command::kCas) {
    request.bits |= kCasCompare;
    valid = line.count > 5 && parse_u64_strict(line.word[5], request.cas_compare);
  }
  if (!valid) return make_invalid(request, Status::kBadFormat);
  request.op = store_op(command);
}

WC_HD inline void parse_on_key(const uint8_t* base, const Line& line, Command command,
                               Request& request) {
  const uint32_t words_min = command == Command::kDelete ? 2 : 3;
  if (line.count < words_min) return make_invalid(request, Status::kBadFormat);
  if (ends_with_noreply(line)) request.bits |= kNoReply;
  if (!take_key(base, line, request)) return;
  if (command == Command::kDelete) {
    request.op = Op::kDelete;
  } else if (command == Command::kTouch) {
    request.op = Op::kTouch;
    if (!parse_i32_strict(line.word[2], request.exptime))
      make_invalid(request, Status::kBadExptime);
  } else {
    request.op = command == Command::kIncr ? Op::kIncr : Op::kDecr;
    if (!parse_u64_strict(line.word[2], request.delta)) make_invalid(request, Status::kBadDelta);
  }
}

// Lines of get, gets, gat, gats with a fault, which frame() did not divide into keys.
WC_HD inline void parse_bad_get(const Line& line, Command command, Request& request) {
  Status status = Status::kBadFormat;
  if (command == Command::kGat || command == Command::kGats) {
    int32_t exptime = 0;
    if (line.count > 2 && !parse_i32_strict(line.word[1], exptime)) status = Status::kBadExptime;
  } else if (ends_with_noreply(line)) {
    request.bits |= kNoReply;
  }
  make_invalid(request, status);
}

WC_HD inline void parse_flush_all(const Line& line, Request& request) {
  request.op = Op::kFlushAll;
  const uint32_t bare = (request.bits & kNoReply) != 0 ? 2 : 1;
  if (line.count != bare && !parse_i32_strict(line.word[1], request.exptime)) {
    make_invalid(request, Status::kBadExptime);
  }
}

// flush_prefix <prefix> [<exptime>] [noreply]. Without a prefix the client is told so in any case:
// it would believe that something was flushed.
WC_HD inline void parse_flush_prefix(const uint8_t* base, const Line& line, Request& request) {
  const uint32_t words = line.count - ((request.bits & kNoReply) != 0 ? 1 : 0);
  if (words < 2) request.bits &= ~uint32_t{kNoReply};
  if (words < 2 || words > 3) return make_invalid(request, Status::kBadFormat);
  if (!take_key(base, line, request)) return;
  request.op = Op::kFlushPrefix;
  if (words == 3 && !parse_i32_strict(line.word[2], request.exptime)) {
    make_invalid(request, Status::kBadExptime);
  }
}

WC_HD inline void parse_number(const Line& line, Op op, Status otherwise, Request& request) {
  uint32_t number = 0;
  request.op = op;
  if (!parse_u32_strict(line.word[1], number)) make_invalid(request, otherwise);
  request.delta = number;
}

WC_HD inline void parse_administrative(const uint8_t* base, const Line& line, Command command,
                                       Request& request) {
  if (command != Command::kStats && command != Command::kVersion && command != Command::kQuit &&
      ends_with_noreply(line)) {
    request.bits |= kNoReply;
  }
  switch (command) {
    case Command::kQuit:
      request.op = Op::kQuit;
      break;
    case Command::kVersion:
      request.op = Op::kVersion;
      break;
    case Command::kFlushAll:
      parse_flush_all(line, request);
      break;
    case Command::kFlushPrefix:
      parse_flush_prefix(base, line, request);
      break;
    case Command::kVerbosity:
      parse_number(line, Op::kVerbosity, Status::kBadFormat, request);
      break;
    case Command::kCacheMemlimit:
      parse_number(line, Op::kCacheMemlimit, Status::kUnknownCommand, request);
      break;
    case Command::kStats:
      request.op = Op::kStats;
      set_words(base, arguments(line), request);
      break;
    case Command::kShutdown:
      request.op = Op::kShutdown;
      set_words(base, arguments(line), request);
      break;
    case Command::kAdmin:
      request.op = Op::kAdmin;
      set_words(base, line.text, request);
      break;
    default:
      make_invalid(request, line.too_short ? Status::kBadFormat : Status::kUnknownCommand);
      break;
  }
}

}  // namespace text_detail

// Parses the head of a text storage command. The caller fills in the body. Pure.
WC_HD inline void parse_text_store(const uint8_t* base, Bytes head, Request& request) {
  request.protocol = Protocol::kText;
  const text_detail::Line line = text_detail::split(without_line_end(head));
  text_detail::parse_store(base, line, command_of(line.word[0]), request);
}

namespace text_detail {

// Reads 1 to 10 digits, which a blank follows, and passes them. `number` is cut to 32 bits, as
// parse_u32() and parse_i32() cut it. False: it is something else.
WC_HD inline bool take_number(const uint8_t*& at, uint32_t& number) {
  uint32_t sum = static_cast<uint32_t>(*at) - '0';
  if (sum > 9) return false;
  for (uint32_t i = 0; i < kDigitsOfU32Max; ++i) {
    const uint32_t digit = static_cast<uint32_t>(*++at) - '0';
    if (digit > 9) break;
    sum = sum * 10 + digit;
  }
  number = sum;
  return *at++ == ' ';
}

}  // namespace text_detail

// Parses the head of a set whose key frame() has found, as parse_text_store() does. False: it must
// do so. REQUIRES: frame.detail is the size of the key.
WC_HD inline bool parse_usual_set(const uint8_t* base, const Frame& frame, Request& request) {
  constexpr uint32_t kCommand = 4;  // bytes, with the blank
  const uint8_t* at = base + frame.offset + kCommand + frame.detail + 1;
  uint32_t client_flags = 0;
  uint32_t exptime = 0;
  if (!text_detail::take_number(at, client_flags) || !text_detail::take_number(at, exptime)) {
    return false;
  }
  request.protocol = Protocol::kText;
  request.op = Op::kSet;
  request.key_offset = frame.offset + kCommand;
  request.key_size = frame.detail;
  request.client_flags = client_flags;
  request.exptime = static_cast<int32_t>(exptime);
  return true;
}

// Parses a line without a body.
WC_HD inline void parse_text_line(const uint8_t* base, Bytes head, Request& request) {
  request.protocol = Protocol::kText;
  const Bytes text = without_line_end(head);
  text_detail::Line line = text_detail::split(text);
  line.too_short = head.size < kLineSizeMin;
  // A command must stand at the start of its line, without blanks before it.
  const bool starts = text.size != 0 && text.data[0] != ' ';
  const Command command = starts ? command_of(line.word[0]) : Command::kUnknown;
  switch (command) {
    case Command::kGet:
    case Command::kGets:
    case Command::kGat:
    case Command::kGats:
      return text_detail::parse_bad_get(line, command, request);
    case Command::kSet:
    case Command::kAdd:
    case Command::kReplace:
    case Command::kAppend:
    case Command::kPrepend:
    case Command::kCas:
      return make_invalid(request, Status::kBadFormat);
    case Command::kDelete:
    case Command::kIncr:
    case Command::kDecr:
    case Command::kTouch:
      return text_detail::parse_on_key(base, line, command, request);
    default:
      return text_detail::parse_administrative(base, line, command, request);
  }
}

// Parses one key of the get family.
WC_HD inline void parse_text_key(const Frame& frame, Request& request) {
  request.protocol = Protocol::kText;
  request.op = Op::kGet;
  request.key_offset = frame.offset;
  request.key_size = static_cast<uint8_t>(frame.head_size);
  request.bits = kReturnValue | ((frame.detail & kKeyLast) != 0 ? uint32_t{kLastKey} : 0);
  if (WC_LIKELY((frame.detail & (kKeyOfGets | kKeyOfGat)) == 0)) return;
  if ((frame.detail & kKeyOfGets) != 0) request.bits |= kReturnCas;
  if ((frame.detail & kKeyOfGat) != 0) {
    request.bits |= kTouchBit;
    request.exptime = static_cast<int32_t>(frame.body_size);
  }
}

}  // namespace warpcache::protocol
