// SPDX-License-Identifier: Apache-2.0
//
// The boundaries of keys in a datagram that is one get or gets line, for devices that split it with
// many threads: each finds the first and last bytes of keys in 16 bytes, without knowing what comes
// before. It accepts a part of what frame_datagram() accepts, with the same keys; lines that it
// does not accept are framed by that.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/hd.h"
#include "base/mem.h"
#include "protocol/framing/frame_types.h"

namespace warpcache::protocol {

inline constexpr uint32_t kGetLineBlock = 16;  // bytes that mark_keys() reads

// Where the keys of a line are. Their number and sizes, and whether the line ends before the
// payload does, mark_keys() tells.
struct GetLine {
  uint32_t begin = 0;  // offset in the payload: after the command and the blank that ends it
  uint32_t end = 0;    // before the line end; 0: the payload is no such line
  bool with_cas = false;
};

// Bit i stands for byte i of the block.
struct KeyMarks {
  uint32_t firsts = 0;       // first bytes of keys
  uint32_t lasts = 0;        // last bytes of keys
  bool has_newline = false;  // the line ends earlier: the payload is more than one line
};

namespace get_line_detail {

// 1 for each byte of the word that is equal to the byte that `pattern` repeats, lowest byte first.
WC_HD constexpr uint32_t equal_bytes(uint32_t word, uint32_t pattern) {
  const uint32_t differs = word ^ pattern;
  const uint32_t equal = ~(((differs & 0x7f7f7f7fu) + 0x7f7f7f7fu) | differs | 0x7f7f7f7fu);
  return ((equal >> 7) * 0x00204081u >> 21) & 0xf;
}
static_assert(equal_bytes(0x20002120, 0x20202020) == 0b1001);
static_assert(equal_bytes(0x21202020, 0x20202020) == 0b0111);

}  // namespace get_line_detail

WC_HD inline GetLine open_get_line(Bytes payload) {
  GetLine line;
  const auto size = static_cast<uint32_t>(payload.size);
  if (payload.size < 6 || payload.size >= kLineSizeMax || payload[size - 1] != '\n') return {};
  if (payload[0] != 'g' || payload[1] != 'e' || payload[2] != 't') return {};
  line.with_cas = payload[3] == 's';
  line.begin = line.with_cas ? 5 : 4;
  if (payload[line.begin - 1] != ' ') return {};
  line.end = payload[size - 2] == '\r' ? size - 2 : size - 1;
  return line;
}

// The whole payload is one such line.
WC_HD inline bool is_get_line(Bytes payload) {
  const GetLine line = open_get_line(payload);
  uint32_t at = line.begin;
  while (at < line.end && payload[at] != '\n') ++at;
  return line.end != 0 && at >= line.end;
}

// Marks the keys of the line [begin, end) in the 16 bytes from `at` on. REQUIRES: `at` is a
// multiple of 4, at < end, at + 16 > begin; [at - 1, at + 17) can be read.
WC_HD inline KeyMarks mark_keys(const uint8_t* at, const uint8_t* begin, const uint8_t* end) {
  using get_line_detail::equal_bytes;
  uint32_t blanks = 0;
  uint32_t newlines = 0;
  WC_UNROLL
  for (uint32_t i = 0; i < kGetLineBlock / 4; ++i) {
    const auto word = load_aligned<uint32_t>(at + 4 * i);
    blanks |= equal_bytes(word, 0x20202020u) << (4 * i);
    newlines |= equal_bytes(word, 0x0a0a0a0au) << (4 * i);
  }
  // Bytes outside the line count as blanks.
  uint32_t outside = 0;
  if (at < begin) outside = (1u << (begin - at)) - 1;
  if (end - at < kGetLineBlock) outside |= 0xffffu << (end - at);
  blanks = (blanks | outside) & 0xffff;
  const uint32_t blank_before = at <= begin || at[-1] == ' ' ? 1 : 0;
  const uint32_t blank_after = end - at <= kGetLineBlock || at[kGetLineBlock] == ' ' ? 1 : 0;
  KeyMarks marks;
  marks.firsts = ~blanks & (blanks << 1 | blank_before) & 0xffff;
  marks.lasts = ~blanks & (blanks >> 1 | blank_after << (kGetLineBlock - 1)) & 0xffff;
  marks.has_newline = (newlines & ~outside) != 0;
  return marks;
}

}  // namespace warpcache::protocol
