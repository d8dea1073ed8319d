// SPDX-License-Identifier: Apache-2.0
//
// Framing of the text and meta protocols.
#pragma once

#include "base/bits.h"
#include "base/number.h"
#include "protocol/framing/frame_keys.h"
#include "protocol/framing/framer.h"
#include "protocol/framing/item_size.h"
#include "protocol/framing/scan.h"
#include "protocol/framing/usual_lines.h"
#include "protocol/parse/meta.h"
#include "protocol/parse/text.h"
#include "protocol/parse/words.h"

namespace warpcache::protocol::framing {

// Word number `index` (from 0), or empty Bytes.
WC_HD inline Bytes word_at(const LineScan& scan, Bytes text, uint32_t index) {
  if (WC_LIKELY(text.size < 64)) {
    const WordMap map(scan.blanks, text.size);
    uint64_t starts = map.starts;
    for (uint32_t i = 0; i < index; ++i) starts &= starts - 1;
    if (starts == 0) return {};
    const uint32_t start = lowest_bit(starts);
    return {text.data + start, lowest_bit(map.blanks >> start)};
  }
  Words words(text);
  Bytes word;
  for (uint32_t i = 0; i <= index; ++i) {
    if (!words.next(word)) return {};
  }
  return word;
}

// Whether every word of an ms line after its length may be a flag. If not, the line is malformed
// and has no body, whatever its length says.
WC_HD inline bool meta_words_may_be_flags(Bytes text) {
  Words words(text);
  Bytes word;
  for (uint32_t i = 0; i < kWordsMax && words.next(word); ++i) {
    if (i >= 3 && !may_be_flag(word.data[0])) return false;
  }
  return true;
}

// Why a storage command with a large body is refused, or kOk. For a small body, parse() checks the
// line when the body has arrived.
WC_HD inline Status judge_large_store(const Framer& framer, uint32_t line_size, uint32_t body_size,
                                      Command command) {
  const Bytes head = {framer.at(), line_size};
  Request request = {};
  if (command == Command::kMetaSet) {
    parse_meta_line(framer.at(), head, true, request);
  } else {
    parse_text_store(framer.at(), head, request);
  }
  if (request.op == Op::kInvalid) return request.status;
  const bool fits = item_fits(framer.limits(), request.key_size, request.client_flags, body_size);
  return fits ? Status::kOk : Status::kTooLarge;
}

WC_HD inline FrameStep refuse_store(Framer& framer, uint32_t line_size, uint32_t body_size,
                                    Status status) {
  framer.emit(framer.at(), line_size, body_size, FrameKind::kRefusedStore,
              static_cast<uint8_t>(status));
  framer.pass(line_size);
  framer.swallow(uint64_t{body_size} + 2);
  return FrameStep::kTaken;
}

// Reads the body's length from a storage command's line. False: there is no valid length.
WC_HD inline bool find_length(const LineScan& scan, Bytes text, bool meta, uint32_t& length) {
  int32_t value = 0;
  if (!parse_i32_strict(word_at(scan, text, meta ? 2 : 4), value)) return false;
  if (value < 0 || value > INT32_MAX - 2) return false;
  length = static_cast<uint32_t>(value);
  return !meta || meta_words_may_be_flags(text);
}

// Frames the body that follows a storage command's line, and the CRLF after it. `detail`: the
// frame's.
WC_HD inline FrameStep take_body(Framer& framer, uint32_t line_size, uint32_t body_size,
                                 Command command, uint8_t detail) {
  const FrameKind kind =
      command == Command::kMetaSet ? FrameKind::kMetaStore : FrameKind::kTextStore;
  const bool large = body_size > framer.limits().inline_body_max;
  // A body that fits with the longest key and with flags fits with any key.
  if (WC_UNLIKELY(large || !item_fits(framer.limits(), kKeySizeMax, 1, body_size))) {
    const Status status = judge_large_store(framer, line_size, body_size, command);
    if (status != Status::kOk) return refuse_store(framer, line_size, body_size, status);
    if (large) return framer.stop_at_large(line_size, body_size, kind);
  }
  const uint64_t size = uint64_t{line_size} + body_size + 2;
  if (framer.left() < size) {
    framer.set_need(size, true);
    return FrameStep::kMore;
  }
  const uint8_t* const body_end = framer.at() + line_size + body_size;
  if (WC_LIKELY(body_end[0] == '\r' && body_end[1] == '\n')) {
    framer.emit(framer.at(), line_size, body_size, kind, detail);
  } else {
    framer.emit(framer.at(), line_size, body_size, FrameKind::kRefusedStore,
                static_cast<uint8_t>(Status::kBadDataChunk));
  }
  framer.pass(size);
  return FrameStep::kTaken;
}

// Frames a storage command.
WC_HD inline FrameStep take_store(Framer& framer, const LineScan& scan, Bytes text,
                                  Command command) {
  const bool meta = command == Command::kMetaSet;
  uint32_t body_size = 0;
  if (!find_length(scan, text, meta, body_size)) {
    framer.emit(framer.at(), scan.size, 0, meta ? FrameKind::kMetaLine : FrameKind::kTextLine, 0);
    framer.pass(scan.size);
    return FrameStep::kTaken;
  }
  return take_body(framer, scan.size, body_size, command, 0);
}

// Whether the line is a request of HTTP: an unknown command whose last word is a version of HTTP.
// Such connections are closed.
WC_HD inline bool is_http(Bytes text) {
  const text_detail::Line line = text_detail::split(text);
  return line.count > 1 && line.last.size >= 5 && mem_equal(line.last.data, "HTTP/", 5);
}

// Frames a complete line whose command is not in the get family.
WC_HD inline FrameStep take_line(Framer& framer, const LineScan& scan, Bytes text,
                                 Command command) {
  if (is_text_store(command) || command == Command::kMetaSet) {
    return take_store(framer, scan, text, command);
  }
  if (command == Command::kUnknown && is_http(text)) return framer.close();
  const FrameKind kind = is_meta(command) ? FrameKind::kMetaLine : FrameKind::kTextLine;
  framer.emit(framer.at(), scan.size, 0, kind, 0);
  framer.pass(scan.size);
  return command == Command::kQuit ? framer.close() : FrameStep::kTaken;
}

// The key of a line "get <key>", or empty Bytes if the line has another form.
WC_HD inline Bytes single_key(const Framer& framer, const LineScan& scan, Bytes text) {
  constexpr uint64_t kCommand = 0xf;
  if (text.size < 5 || load_as<uint32_t>(text.data) != load_as<uint32_t>("get ")) return {};
  if ((scan.blanks & ~kCommand) != 0 || text.size > 4 + kKeySizeMax) return {};
  if (scan.size > 64) {
    const uint8_t* const line_end = framer.at() + scan.size;
    const uint8_t* const found = find_delimiter(framer.begin(), framer.at() + 64, line_end);
    if (found != line_end - 1) return {};
  }
  return text.from(4);
}

// Takes a line of a usual form as take_any_line() does, but for Frame::detail. False: it has none,
// and nothing was taken.
WC_HD inline bool take_usual_line(Framer& framer, const LineScan& scan, FrameStep& step) {
  const uint8_t* const line = framer.at();
  const UsualMessage usual = usual_message(line, scan);
  step = FrameStep::kTaken;
  if (usual.head_size == 0) {
    return scan.size >= kUsualLineMin &&
           load_as<uint32_t>(line) == literal_word<uint32_t>("get ", 0) && take_get_at_once(framer);
  }
  if (usual.has_body()) {
    const bool meta = usual.kind == FrameKind::kMetaStore;
    step = take_body(framer, scan.size, usual.body_size, meta ? Command::kMetaSet : Command::kSet,
                     usual.detail);
    return true;
  }
  framer.emit(line + usual.head, usual.head_size, 0, usual.kind, usual.detail);
  framer.pass(scan.size);
  return true;
}

#if !defined(__CUDA_ARCH__)
// Takes messages with usual lines, as take_usual_line() does one by one, while there is nothing to
// decide: up to the first that has another form, is not whole or must be looked at closer, and not
// those near the end of the input. Flattened, so that the walk stays in registers.
__attribute__((flatten)) inline void take_usual_lines(Framer& framer) {
  Framer walk = framer;
  const FrameLimits limits = framer.limits();
  while (walk.left() >= kUsualLineMax && !walk.full()) {
    const uint8_t* const line = walk.at();
    const LineScan scan = scan_line_start(walk.begin(), line, walk.end());
    if (scan.size == 0) break;
    const UsualMessage usual = usual_message(line, scan);
    if (usual.head_size == 0) break;
    uint64_t size = scan.size;
    if (usual.has_body()) {
      if (usual.body_size > limits.inline_body_max ||
          !item_fits(limits, kKeySizeMax, 1, usual.body_size)) {
        break;
      }
      size += uint64_t{usual.body_size} + 2;
      if (walk.left() < size || line[size - 2] != '\r' || line[size - 1] != '\n') break;
    }
    walk.emit(line + usual.head, usual.head_size, usual.body_size, usual.kind, usual.detail);
    walk.pass(size);
  }
  framer.continue_from(walk);
}
#endif

// Takes a line of any form.
WC_HD inline FrameStep take_any_line(Framer& framer, const LineScan& scan) {
  const Bytes text = without_line_end({framer.at(), scan.size});
  const Bytes key = single_key(framer, scan, text);
  if (!key.empty()) {
    framer.emit(key.data, key.size, 0, FrameKind::kTextKey, kKeyLast);
    framer.pass(scan.size);
    return FrameStep::kTaken;
  }
  const bool starts = !text.empty() && text.data[0] != ' ';
  const Command command = starts ? command_of(word_at(scan, text, 0)) : Command::kUnknown;
  if (is_get_family(command)) return take_get_line(framer, scan.size, text, command);
  return take_line(framer, scan, text, command);
}

// Takes the next message of a text stream. REQUIRES: !full(), left() > 0, not inside a multiget.
WC_HD inline FrameStep take_text(Framer& framer) {
  LineScan scan = scan_line_start(framer.begin(), framer.at(), framer.end());
  if (WC_LIKELY(scan.size != 0)) {
    FrameStep step;
    if (WC_LIKELY(take_usual_line(framer, scan, step))) {
#if !defined(__CUDA_ARCH__)
      if (step == FrameStep::kTaken && framer.left() >= kUsualLineMax) take_usual_lines(framer);
#endif
      return step;
    }
    return take_any_line(framer, scan);
  }
  if (framer.left() < kUsualLineMax) return FrameStep::kMore;
  if (load_as<uint32_t>(framer.at()) == literal_word<uint32_t>("get ", 0) &&
      take_get_at_once(framer)) {
    return FrameStep::kTaken;
  }
  scan = scan_line(framer.begin(), framer.at(), framer.end(), kLineSizeMax);
  if (scan.size != 0) return take_any_line(framer, scan);
  return framer.left() < kLineSizeMax ? FrameStep::kMore : take_long_line(framer);
}

// Skips the rest of a refused line; the error is written when the line's end has come.
WC_HD inline FrameStep skip_refused(Framer& framer) {
  const uint8_t* const newline = find_newline(framer.begin(), framer.at(), framer.end());
  framer.pass_to(newline);
  if (newline == framer.end()) return FrameStep::kMore;
  if (framer.full()) return FrameStep::kNoSpace;
  FrameState& state = framer.state();
  framer.emit_status(newline, 0, FrameKind::kInvalid, static_cast<Status>(state.refused));
  framer.pass(1);
  state.refused = 0;
  return FrameStep::kTaken;
}

}  // namespace warpcache::protocol::framing
