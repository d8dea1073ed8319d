// SPDX-License-Identifier: Apache-2.0
//
// The lines that most requests are, recognised by where their blanks are: no word of them is
// searched for or compared one by one. The frame of such a line tells parse() the size of its key
// (Frame::detail), so that parse() need not divide the line again. All other lines, and all that
// may be malformed, are left to the general way, which gives the same requests for these lines.
#pragma once

#include "base/bits.h"
#include "base/mem.h"
#include "protocol/framing/frame_types.h"
#include "protocol/framing/scan.h"
#include "protocol/parse/meta.h"

namespace warpcache::protocol::framing {

// Line ends included; the bits of LineScan::blanks cover them.
inline constexpr uint32_t kUsualLineMin = 7;  // "get k", CRLF
inline constexpr uint32_t kUsualLineMax = 64;

// A body's length has at most this number of digits, so that it fits in 32 bits.
inline constexpr uint32_t kUsualLengthDigitsMax = 8;

// A storage command, or key_size 0: the line has another form.
struct UsualStore {
  uint32_t key_size = 0;
  uint32_t body_size = 0;
};

// Reads 1 to kUsualLengthDigitsMax digits up to `end`.
WC_HD inline bool read_length(const uint8_t* at, const uint8_t* end, uint32_t& length) {
  if (at >= end || end - at > static_cast<int32_t>(kUsualLengthDigitsMax)) return false;
  uint32_t sum = 0;
  for (; at != end; ++at) {
    const uint32_t digit = static_cast<uint32_t>(*at) - '0';
    if (digit > 9) return false;
    sum = sum * 10 + digit;
  }
  length = sum;
  return true;
}

WC_HD inline bool has_neighbours(uint64_t blanks) { return (blanks & blanks >> 1) != 0; }
WC_HD inline uint64_t without_lowest(uint64_t mask) { return mask & (mask - 1); }

// "set <key> <flags> <exptime> <bytes>": five words, a blank between each two. REQUIRES, as the
// next: the line starts with its command and a blank, and ends with CRLF, within kUsualLineMax.
WC_HD inline UsualStore usual_set(const uint8_t* line, const LineScan& scan) {
  const uint64_t behind_key = without_lowest(scan.blanks);
  const uint64_t last = without_lowest(without_lowest(behind_key));
  if (last == 0 || without_lowest(last) != 0 || has_neighbours(scan.blanks)) return {};
  UsualStore store;
  const uint8_t* const length = line + lowest_bit(last) + 1;
  if (!read_length(length, line + scan.size - 2, store.body_size)) return {};
  store.key_size = lowest_bit(behind_key) - 4;
  return store;
}

// "ms <key> <bytes>", without flags.
WC_HD inline UsualStore usual_meta_set(const uint8_t* line, const LineScan& scan) {
  const uint64_t behind_key = without_lowest(scan.blanks);
  if (behind_key == 0 || without_lowest(behind_key) != 0 || has_neighbours(scan.blanks)) return {};
  UsualStore store;
  const uint32_t key_end = lowest_bit(behind_key);
  if (!read_length(line + key_end + 1, line + scan.size - 2, store.body_size)) return {};
  store.key_size = key_end - 3;
  return store;
}

// The size of the key of "mg <key>" and whatever flags; 0: none follows the first blank.
WC_HD inline uint32_t usual_meta_get(const LineScan& scan) {
  const uint64_t behind_key = without_lowest(scan.blanks);
  const uint32_t key_end = behind_key != 0 ? lowest_bit(behind_key) : scan.size - 2;
  return key_end - 3;
}

// The frame of a message whose line has a usual form, but for the body's end.
struct UsualMessage {
  uint32_t head = 0;       // where the frame's head starts in the line
  uint32_t head_size = 0;  // 0: the line has another form
  uint32_t body_size = 0;
  FrameKind kind = FrameKind::kTextLine;
  uint8_t detail = 0;

  WC_HD bool has_body() const {
    return kind == FrameKind::kTextStore || kind == FrameKind::kMetaStore;
  }
};

// Inlined: a result in memory costs more than the rest.
WC_HD __attribute__((always_inline)) inline UsualMessage usual_message(const uint8_t* line,
                                                                       const LineScan& scan) {
  if (scan.size - kUsualLineMin > kUsualLineMax - kUsualLineMin) return {};
  if (WC_UNLIKELY(line[scan.size - 2] != '\r')) return {};
  const uint32_t command = load_as<uint32_t>(line);
  if (command == literal_word<uint32_t>("get ", 0)) {
    if (scan.blanks != 8) return {};
    return {4, scan.size - 6, 0, FrameKind::kTextKey, kKeyLast};
  }
  if (command == literal_word<uint32_t>("set ", 0)) {
    const UsualStore store = usual_set(line, scan);
    if (store.key_size == 0) return {};
    return {0, scan.size, store.body_size, FrameKind::kTextStore,
            static_cast<uint8_t>(store.key_size)};
  }
  if ((scan.blanks & 7) != 4 || line[0] != 'm') return {};
  if (line[1] == 'g') {
    const uint32_t key_size = usual_meta_get(scan);
    if (key_size == 0) return {};
    return {0, scan.size, 0, FrameKind::kMetaLine, static_cast<uint8_t>(key_size)};
  }
  if (line[1] != 's') return {};
  const UsualStore store = usual_meta_set(line, scan);
  if (store.key_size == 0) return {};
  return {0, scan.size, store.body_size, FrameKind::kMetaStore,
          static_cast<uint8_t>(store.key_size)};
}

}  // namespace warpcache::protocol::framing
