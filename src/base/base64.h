// SPDX-License-Identifier: Apache-2.0
//
// Base64 with the standard alphabet and padding: the form of binary keys in meta commands. Decoding
// accepts what memcached accepts: it skips bytes outside the alphabet; the others must come in
// groups of four; the first group with padding ends the text.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/hd.h"

namespace warpcache {

WC_HD constexpr size_t base64_size(size_t size) { return (size + 2) / 3 * 4; }

namespace base64_detail {

inline constexpr uint8_t kNoDigit = 0xff;

// 6 bits, or kNoDigit. '=' counts as 0.
WC_HD inline uint8_t digit_of(uint8_t c) {
  if (c >= 'A' && c <= 'Z') return static_cast<uint8_t>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<uint8_t>(c - 'a' + 26);
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0' + 52);
  if (c == '+') return 62;
  if (c == '/') return 63;
  return c == '=' ? 0 : kNoDigit;
}

WC_HD inline uint8_t char_of(uint32_t digit) {
  if (digit < 26) return static_cast<uint8_t>('A' + digit);
  if (digit < 52) return static_cast<uint8_t>('a' + (digit - 26));
  if (digit < 62) return static_cast<uint8_t>('0' + (digit - 52));
  return digit == 62 ? '+' : '/';
}

}  // namespace base64_detail

// Writes base64_size(from.size) bytes; returns the end. `out` may not overlap `from`.
WC_HD inline uint8_t* base64_encode(Bytes from, uint8_t* out) {
  for (size_t at = 0; at < from.size; at += 3) {
    const size_t left = from.size - at;
    const uint32_t second = left > 1 ? from.data[at + 1] : 0u;
    const uint32_t third = left > 2 ? from.data[at + 2] : 0u;
    const uint32_t group = static_cast<uint32_t>(from.data[at]) << 16 | second << 8 | third;
    out[0] = base64_detail::char_of(group >> 18);
    out[1] = base64_detail::char_of(group >> 12 & 63);
    out[2] = left > 1 ? base64_detail::char_of(group >> 6 & 63) : static_cast<uint8_t>('=');
    out[3] = left > 2 ? base64_detail::char_of(group & 63) : static_cast<uint8_t>('=');
    out += 4;
  }
  return out;
}

// Decodes `from` into `out`. `out` may be from.data (decode in place), or null to compute the size
// only. Returns the decoded size, which is below from.size; 0 if the text is not valid.
WC_HD inline size_t base64_decode(Bytes from, uint8_t* out) {
  size_t digits = 0;
  for (size_t i = 0; i < from.size; ++i) {
    if (base64_detail::digit_of(from.data[i]) != base64_detail::kNoDigit) ++digits;
  }
  if (digits == 0 || digits % 4 != 0) return 0;

  size_t size = 0;
  uint32_t group = 0;
  uint32_t in_group = 0;
  uint32_t padding = 0;
  for (size_t i = 0; i < from.size; ++i) {
    const uint8_t digit = base64_detail::digit_of(from.data[i]);
    if (digit == base64_detail::kNoDigit) continue;
    if (from.data[i] == '=') ++padding;
    group = group << 6 | digit;
    if (++in_group < 4) continue;
    if (padding > 2) return 0;
    const uint32_t bytes = 3 - padding;
    if (out != nullptr) {
      for (uint32_t byte = 0; byte < bytes; ++byte) {
        out[size + byte] = static_cast<uint8_t>(group >> (16 - 8 * byte));
      }
    }
    size += bytes;
    if (padding != 0) break;
    group = 0;
    in_group = 0;
  }
  return size;
}

}  // namespace warpcache
