// SPDX-License-Identifier: Apache-2.0
//
// Framing of the get family: one Frame for each key. A line of up to kLineSizeMax bytes is framed
// when it is complete, and refused as a whole if one of its keys is too long. A longer line is
// framed key by key as it arrives; if a key is too long, the keys before it have been answered
// already. The error follows at the end of the line.
#pragma once

#include "base/bits.h"
#include "base/number.h"
#include "protocol/framing/framer.h"
#include "protocol/framing/scan.h"
#include "protocol/message.h"
#include "protocol/parse/words.h"

namespace warpcache::protocol::framing {

// Further bits of FrameState::multiget, besides TextKeyBit.
inline constexpr uint8_t kInMultiget = 1u << 7;
inline constexpr uint8_t kBeforeFirstKey = 1u << 6;

// The most blanks after a key. Key and blanks stay in the input until it is known whether another
// key follows.
inline constexpr uint32_t kBlanksMax = 32 * 1024;

enum class KeyEnd : uint8_t { kNext, kLast, kUnknown, kTooFar };

// What follows a key that ends at `at`, where there is a blank or LF. `next` is the start of the
// next key or line.
WC_HD inline KeyEnd behind_key(const Framer& framer, const uint8_t* at, const uint8_t*& next) {
  const uint8_t* const end = framer.end();
  const uint8_t* const stop = static_cast<uint64_t>(end - at) > kBlanksMax ? at + kBlanksMax : end;
  while (at != stop && *at == ' ') ++at;
  if (at == stop) return stop == end ? KeyEnd::kUnknown : KeyEnd::kTooFar;
  next = at;
  if (*at == '\r') {
    if (at + 1 == end) return KeyEnd::kUnknown;
    if (at[1] != '\n') return KeyEnd::kNext;
    next = at + 2;
    return KeyEnd::kLast;
  }
  if (*at != '\n') return KeyEnd::kNext;
  next = at + 1;
  return KeyEnd::kLast;
}

WC_HD inline FrameStep refuse_keys(Framer& framer, Status status) {
  framer.state().multiget = 0;
  framer.state().refused = static_cast<uint8_t>(status);
  return FrameStep::kTaken;
}

// Skips the blanks before the first key. kTaken: the key is there, or the line has none.
WC_HD inline FrameStep find_first_key(Framer& framer) {
  const uint8_t* at = framer.at();
  const uint8_t* const end = framer.end();
  while (at != end && *at == ' ') ++at;
  framer.pass_to(at);
  if (at == end || (*at == '\r' && at + 1 == end)) return FrameStep::kMore;
  if (*at == '\n' || (*at == '\r' && at[1] == '\n')) return refuse_keys(framer, Status::kBadFormat);
  framer.state().multiget &= static_cast<uint8_t>(~kBeforeFirstKey);
  return FrameStep::kTaken;
}

// Frames the keys of a get line from at(), the start of a key, to the line's end or to the end of
// the input.
WC_HD inline FrameStep take_keys(Framer& framer) {
  FrameState& state = framer.state();
  if (WC_UNLIKELY((state.multiget & kBeforeFirstKey) != 0)) return find_first_key(framer);
  const uint8_t flags = state.multiget & static_cast<uint8_t>(kKeyOfGets | kKeyOfGat);
  const uint32_t exptime = static_cast<uint32_t>(state.multiget_exptime);
  while (true) {
    if (framer.full()) return FrameStep::kNoSpace;
    const uint8_t* const key = framer.at();
    const uint8_t* delimiter = find_delimiter(framer.begin(), key, framer.end());
    if (delimiter == framer.end()) {
      const uint64_t size = framer.left();
      const bool may_fit =
          size <= kKeySizeMax || (size == kKeySizeMax + 1 && delimiter[-1] == '\r');
      return may_fit ? FrameStep::kMore : refuse_keys(framer, Status::kBadFormat);
    }
    const uint8_t* next = nullptr;
    const KeyEnd what = behind_key(framer, delimiter, next);
    const uint8_t* key_end = delimiter;
    if (*delimiter == '\n' && delimiter[-1] == '\r' && delimiter - 1 != key) --key_end;
    const auto size = static_cast<uint64_t>(key_end - key);
    if (size > kKeySizeMax) return refuse_keys(framer, Status::kBadFormat);
    if (what == KeyEnd::kUnknown) return FrameStep::kMore;
    if (what == KeyEnd::kTooFar) return framer.close();
    const bool last = what == KeyEnd::kLast;
    framer.emit(key, size, exptime, FrameKind::kTextKey,
                last ? static_cast<uint8_t>(flags | kKeyLast) : flags);
    framer.pass_to(next);
    if (!last) continue;
    state.multiget = 0;
    return FrameStep::kTaken;
  }
}

// Finds where the keys of a get line start, and its exptime. Returns kOk, or the fault in the part
// of the line that has arrived.
WC_HD inline Status find_keys(Bytes text, Command command, int32_t& exptime, Bytes& keys) {
  Words words(text);
  Bytes word;
  (void)words.next(word);
  if (command == Command::kGat || command == Command::kGats) {
    if (!words.next(word) || words.rest().empty()) return Status::kBadFormat;
    if (!parse_i32_strict(word, exptime)) return Status::kBadExptime;
  }
  keys = words.rest();
  return keys.empty() ? Status::kBadFormat : Status::kOk;
}

WC_HD inline void start_multiget(Framer& framer, Command command, int32_t exptime, Bytes keys) {
  uint8_t flags = kInMultiget;
  if (command == Command::kGets || command == Command::kGats) flags |= kKeyOfGets;
  if (command == Command::kGat || command == Command::kGats) flags |= kKeyOfGat;
  framer.state().multiget = flags;
  framer.state().multiget_exptime = exptime;
  framer.pass_to(keys.data);
}

// Frames a whole line "get <key>...", with one blank between each two words, in one pass over it.
// False: it has another form, or not all of it has come, or it may have to be refused, or `out` is
// full; nothing was taken, and take_get_line() or take_long_line() does the same and more.
WC_HD inline bool take_get_at_once(Framer& framer) {
  constexpr uint32_t kCommand = 4;  // bytes, with the blank
  const uint8_t* const begin = framer.begin();
  const uint8_t* const end = framer.end();
  Frame* out = framer.out();
  Frame* const out_end = out + framer.room();
  const uint8_t* key = framer.at() + kCommand;
  for (const uint8_t* at = key; at < end; at += 16) {
    const scan_detail::Masks masks = scan_detail::masks_at(begin, at, end);
    const uint32_t before_end = masks.newlines != 0 ? masks.newlines ^ (masks.newlines - 1) : ~0u;
    for (uint32_t blanks = masks.blanks & before_end; blanks != 0; blanks &= blanks - 1) {
      const uint8_t* const delimiter = at + lowest_bit(blanks);
      const auto size = static_cast<uint64_t>(delimiter - key);
      if (WC_UNLIKELY(size - 1 >= kKeySizeMax || out == out_end)) return false;
      *out++ = framer.make_head(key, size, FrameKind::kTextKey, 0);
      key = delimiter + 1;
    }
    if (WC_LIKELY(masks.newlines == 0)) continue;
    const uint8_t* const newline = at + lowest_bit(masks.newlines);
    auto size = static_cast<uint64_t>(newline - key);
    if (size != 0 && newline[-1] == '\r') --size;
    if (WC_UNLIKELY(size - 1 >= kKeySizeMax || out == out_end)) return false;
    *out++ = framer.make_head(key, size, FrameKind::kTextKey, kKeyLast);
    framer.add(static_cast<uint32_t>(out - framer.out()));
    framer.pass_to(newline + 1);
    return true;
  }
  return false;
}

// Frames a complete line of the get family; `text` has no line end.
WC_HD inline FrameStep take_get_line(Framer& framer, uint32_t line_size, Bytes text,
                                     Command command) {
  int32_t exptime = 0;
  Bytes keys;
  const Status status = find_keys(text, command, exptime, keys);
  if (status != Status::kOk ||
      has_longer_word(framer.begin(), keys.data, keys.data + keys.size, kKeySizeMax)) {
    framer.emit(framer.at(), line_size, 0, FrameKind::kTextLine, 0);
    framer.pass(line_size);
    return FrameStep::kTaken;
  }
  start_multiget(framer, command, exptime, keys);
  return take_keys(framer);
}

// Frames a line of which kLineSizeMax bytes have come without its end. Only the get family may have
// such lines.
WC_HD inline FrameStep take_long_line(Framer& framer) {
  const Bytes text = {framer.at(), kLineSizeMax};
  Words words(text);
  Bytes word;
  const bool starts = text.data[0] != ' ' && words.next(word);
  const Command command = starts ? command_of(word) : Command::kUnknown;
  if (!is_get_family(command)) return framer.close();
  int32_t exptime = 0;
  Bytes keys;
  const Status status = find_keys(text, command, exptime, keys);
  if (status == Status::kBadExptime) return refuse_keys(framer, status);
  const bool touches = command == Command::kGat || command == Command::kGats;
  if (status == Status::kBadFormat && touches) return framer.close();
  start_multiget(framer, command, exptime, keys);
  framer.state().multiget |= kBeforeFirstKey;
  return take_keys(framer);
}

}  // namespace warpcache::protocol::framing
