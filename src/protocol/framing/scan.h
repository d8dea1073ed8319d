// SPDX-License-Identifier: Apache-2.0
//
// Finds line ends and blanks: 16 bytes a step on x86, byte by byte elsewhere (on a device), with
// the same results. Reads nothing outside [begin, end), where `begin` is the start of the whole
// input.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "base/bits.h"
#include "base/hd.h"

#if defined(__SSE2__) && !defined(__CUDA_ARCH__)
#define WC_SCAN_SSE2 1
#include <emmintrin.h>
#else
#define WC_SCAN_SSE2 0
#endif

namespace warpcache::protocol {

struct LineScan {
  uint32_t size = 0;    // of the line with its LF; 0: no LF within the limit
  uint64_t blanks = 0;  // bit i: byte i of the line is a blank; the first 64 bytes only
};

namespace scan_detail {

struct Masks {
  uint32_t blanks;
  uint32_t newlines;
};

WC_HD inline Masks masks_scalar(const uint8_t* at, uint32_t count) {
  Masks masks = {0, 0};
  for (uint32_t i = 0; i < count; ++i) {
    masks.blanks |= static_cast<uint32_t>(at[i] == ' ') << i;
    masks.newlines |= static_cast<uint32_t>(at[i] == '\n') << i;
  }
  return masks;
}

#if WC_SCAN_SSE2
inline Masks masks_of_16(const uint8_t* at) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const int blanks = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')));
  const int newlines = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')));
  return {static_cast<uint32_t>(blanks), static_cast<uint32_t>(newlines)};
}
#endif

// The masks of the last bytes of the input, fewer than 16 of them.
WC_HD inline Masks masks_at_end(const uint8_t* begin, const uint8_t* at, const uint8_t* end) {
  const auto left = static_cast<uint64_t>(end - at);
#if WC_SCAN_SSE2
  if (WC_LIKELY(end - begin >= 16)) {
    // Load the 16 bytes that end there and shift out those before `at`.
    const Masks masks = masks_of_16(end - 16);
    const uint32_t extra = 16 - static_cast<uint32_t>(left);
    return {masks.blanks >> extra, masks.newlines >> extra};
  }
#else
  (void)begin;
#endif
  return masks_scalar(at, left < 16 ? static_cast<uint32_t>(left) : 16);
}

// The masks of up to 16 bytes from `at` on. REQUIRES: begin <= at < end.
WC_HD inline Masks masks_at(const uint8_t* begin, const uint8_t* at, const uint8_t* end) {
#if WC_SCAN_SSE2
  if (WC_LIKELY(end - at >= 16)) return masks_of_16(at);
#endif
  return masks_at_end(begin, at, end);
}

}  // namespace scan_detail

namespace scan_detail {

// The line that ends with the first of `newlines`, which are at `offset` and up.
WC_HD inline LineScan line_of(uint32_t offset, uint32_t newlines, uint64_t blanks) {
  LineScan scan;
  scan.size = offset + lowest_bit(newlines) + 1;
  scan.blanks = scan.size < 64 ? blanks & ((uint64_t{1} << scan.size) - 1) : blanks;
  return scan;
}

}  // namespace scan_detail

// The line that starts at `at`, if it ends within 64 bytes.
WC_HD inline LineScan scan_line_start(const uint8_t* begin, const uint8_t* at, const uint8_t* end) {
  constexpr uint32_t kSize = 64;
  const auto left = static_cast<uint64_t>(end - at);
  uint64_t blanks = 0;
#if WC_SCAN_SSE2
  if (WC_LIKELY(left >= kSize)) {
    WC_UNROLL
    for (uint32_t offset = 0; offset < kSize; offset += 16) {
      const scan_detail::Masks masks = scan_detail::masks_of_16(at + offset);
      blanks |= static_cast<uint64_t>(masks.blanks) << offset;
      if (masks.newlines != 0) return scan_detail::line_of(offset, masks.newlines, blanks);
    }
    return {};
  }
#endif
  const auto size = static_cast<uint32_t>(left < kSize ? left : kSize);
  uint32_t offset = 0;
  for (; offset + 16 <= size; offset += 16) {
    const scan_detail::Masks masks = scan_detail::masks_at(begin, at + offset, end);
    blanks |= static_cast<uint64_t>(masks.blanks) << offset;
    if (masks.newlines != 0) return scan_detail::line_of(offset, masks.newlines, blanks);
  }
  if (offset == size) return {};
  const scan_detail::Masks masks = scan_detail::masks_at_end(begin, at + offset, end);
  if (masks.newlines == 0) return {};
  blanks |= static_cast<uint64_t>(masks.blanks) << offset;
  return scan_detail::line_of(offset, masks.newlines, blanks);
}

// The line that starts at `at`, if it ends within `limit` bytes. REQUIRES: limit % 16 == 1.
WC_HD inline LineScan scan_line(const uint8_t* begin, const uint8_t* at, const uint8_t* end,
                                uint32_t limit) {
  uint64_t blanks = 0;
  for (uint32_t offset = 0; offset < limit && at + offset < end; offset += 16) {
    const scan_detail::Masks masks = scan_detail::masks_at(begin, at + offset, end);
    if (offset < 64) blanks |= static_cast<uint64_t>(masks.blanks) << offset;
    if (masks.newlines == 0) continue;
    const LineScan scan = scan_detail::line_of(offset, masks.newlines, blanks);
    if (scan.size > limit) break;
    return scan;
  }
  LineScan none;
  none.blanks = blanks;
  return none;
}

// The first blank or LF from `at` on, or `end`.
WC_HD inline const uint8_t* find_delimiter(const uint8_t* begin, const uint8_t* at,
                                           const uint8_t* end) {
  while (at < end) {
    const scan_detail::Masks masks = scan_detail::masks_at(begin, at, end);
    const uint32_t both = masks.blanks | masks.newlines;
    if (both != 0) return at + lowest_bit(both);
    at += 16;
  }
  return end;
}

// The first LF from `at` on, or `end`.
WC_HD inline const uint8_t* find_newline(const uint8_t* begin, const uint8_t* at,
                                         const uint8_t* end) {
  while (at < end) {
    const scan_detail::Masks masks = scan_detail::masks_at(begin, at, end);
    if (masks.newlines != 0) return at + lowest_bit(masks.newlines);
    at += 16;
  }
  return end;
}

// Whether [at, end) has more than `count` consecutive bytes without a blank.
WC_HD inline bool has_longer_word(const uint8_t* begin, const uint8_t* at, const uint8_t* end,
                                  uint32_t count) {
  uint32_t run = 0;
  for (; at < end; at += 16) {
    const auto left = static_cast<uint64_t>(end - at);
    const uint32_t here = left < 16 ? static_cast<uint32_t>(left) : 16;
    const uint32_t blanks = scan_detail::masks_at(begin, at, end).blanks;
    if (blanks == 0) {
      run += here;
    } else {
      if (run + lowest_bit(blanks) > count) return true;
      // A run between two blanks of the same 16 bytes is never too long.
      run = here - 1 - highest_bit(blanks);
    }
    if (run > count) return true;
  }
  return false;
}

}  // namespace warpcache::protocol
