// SPDX-License-Identifier: Apache-2.0
//
// Numbers as text. memcached reads them in two ways, and clients rely on what each accepts:
//   lenient (flags and exptime of text storage commands, stored counters): leading blanks, a sign,
//     digits, then the end or a blank; anything may follow the blank. A negative number is accepted
//     if the result, read as a signed integer, is not negative. A 32-bit value is the low half of
//     the 64-bit one.
//   strict (everything else): digits only, after a '-' where the type is signed; in range; at most
//     two characters longer than the longest number in range. A '-' alone is 0.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/hd.h"
#include "base/mem.h"

namespace warpcache {

inline constexpr uint32_t kDigitsOfU64Max = 20;
inline constexpr uint32_t kDigitsOfU32Max = 10;

namespace number_detail {

WC_HD inline bool is_blank(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
WC_HD inline bool is_digit(uint8_t c) { return static_cast<uint8_t>(c - '0') < 10; }

struct Parsed {
  uint64_t magnitude = 0;
  bool negative = false;
  bool valid = false;  // there are digits, they fit 64 bits, and the end or a blank follows
};

WC_HD inline Parsed parse_lenient(Bytes text) {
  Parsed parsed;
  const uint8_t* at = text.data;
  const uint8_t* const end = text.data + text.size;
  while (at != end && is_blank(*at)) ++at;
  if (at != end && (*at == '-' || *at == '+')) {
    parsed.negative = *at == '-';
    ++at;
  }
  const uint8_t* const digits = at;
  const bool may_overflow = text.size > kDigitsOfU64Max - 1;
  uint64_t sum = 0;
  for (; at != end && is_digit(*at); ++at) {
    const uint64_t digit = static_cast<uint64_t>(*at - '0');
    if (WC_UNLIKELY(may_overflow) && sum > (UINT64_MAX - digit) / 10) return parsed;
    sum = sum * 10 + digit;
  }
  if (at == digits || (at != end && !is_blank(*at) && *at != '\0')) return parsed;
  parsed.magnitude = sum;
  parsed.valid = true;
  return parsed;
}

// Reads digits only. REQUIRES: max < 2^64 - 9, or digits_max is 20.
WC_HD inline bool parse_digits(Bytes text, uint32_t digits_max, uint64_t max, uint64_t& out) {
  if (text.size == 0 || text.size > digits_max) return false;
  const bool may_overflow = text.size > kDigitsOfU64Max - 1;
  uint64_t sum = 0;
  for (size_t i = 0; i < text.size; ++i) {
    if (!is_digit(text.data[i])) return false;
    const uint64_t digit = static_cast<uint64_t>(text.data[i] - '0');
    if (WC_UNLIKELY(may_overflow) && sum > (max - digit) / 10) return false;
    sum = sum * 10 + digit;
  }
  if (sum > max) return false;
  out = sum;
  return true;
}

WC_HD inline bool parse_signed(Bytes text, uint32_t size_max, uint64_t max, int64_t& out) {
  if (text.size == 0 || text.size > size_max) return false;
  const bool negative = text.data[0] == '-';
  const Bytes digits = negative ? text.from(1) : text;
  uint64_t magnitude = 0;
  const bool bare_sign = negative && digits.empty();
  if (!bare_sign && !parse_digits(digits, size_max, negative ? max + 1 : max, magnitude))
    return false;
  out = negative ? static_cast<int64_t>(~magnitude + 1) : static_cast<int64_t>(magnitude);
  return true;
}

}  // namespace number_detail

// Lenient. Where it returns false, `out` keeps its value.
WC_HD inline bool parse_u64(Bytes text, uint64_t& out) {
  const number_detail::Parsed parsed = number_detail::parse_lenient(text);
  if (!parsed.valid) return false;
  const uint64_t value = parsed.negative ? ~parsed.magnitude + 1 : parsed.magnitude;
  if (parsed.negative && static_cast<int64_t>(value) < 0) return false;
  out = value;
  return true;
}

// Lenient, cut to 32 bits.
WC_HD inline bool parse_u32(Bytes text, uint32_t& out) {
  uint64_t value = 0;
  if (!parse_u64(text, value)) return false;
  out = static_cast<uint32_t>(value);
  return true;
}

// Lenient, cut to 32 bits.
WC_HD inline bool parse_i32(Bytes text, int32_t& out) {
  const number_detail::Parsed parsed = number_detail::parse_lenient(text);
  constexpr uint64_t kMax = INT64_MAX;
  if (!parsed.valid || parsed.magnitude > kMax + (parsed.negative ? 1 : 0)) return false;
  const uint64_t value = parsed.negative ? ~parsed.magnitude + 1 : parsed.magnitude;
  out = static_cast<int32_t>(static_cast<uint32_t>(value));
  return true;
}

// Strict.
WC_HD inline bool parse_u32_strict(Bytes text, uint32_t& out) {
  uint64_t value = 0;
  if (!number_detail::parse_digits(text, 11, UINT32_MAX, value)) return false;
  out = static_cast<uint32_t>(value);
  return true;
}

WC_HD inline bool parse_i32_strict(Bytes text, int32_t& out) {
  int64_t value = 0;
  if (!number_detail::parse_signed(text, 11, INT32_MAX, value)) return false;
  out = static_cast<int32_t>(value);
  return true;
}

WC_HD inline bool parse_u64_strict(Bytes text, uint64_t& out) {
  return number_detail::parse_digits(text, 22, UINT64_MAX, out);
}

// The number of decimal digits of `value`: 1 to 20.
WC_HD inline uint32_t decimal_size(uint64_t value) {
  uint32_t size = 1;
  while (value >= 10000) {
    value /= 10000;
    size += 4;
  }
  return size + (value >= 1000 ? 3u : value >= 100 ? 2u : value >= 10 ? 1u : 0u);
}

namespace number_detail {

inline constexpr uint64_t kBlock = 100'000'000;  // 8 digits

// The 8 decimal digits of a value below kBlock, one a byte, the first digit in the lowest byte.
// Three steps split all parts of the word at the same time: into 4 digits each, 2 each, 1 each.
WC_HD inline uint64_t digits_of(uint32_t value) {
  const uint64_t halves = value / 10000 | uint64_t{value % 10000} << 32;
  const uint64_t hundreds = (halves * 10486 >> 20) & 0x0000007f0000007f;
  const uint64_t pairs = hundreds | (halves - 100 * hundreds) << 16;
  const uint64_t tens = (pairs * 103 >> 10) & 0x000f000f000f000f;
  return tens | (pairs - 10 * tens) << 8;
}

#if !defined(__CUDA_ARCH__)
// The digits of all numbers below 1000, the first in the lowest byte, and their count in the
// highest.
struct SmallNumbers {
  uint32_t text[1000] = {};

  constexpr SmallNumbers() {
    for (uint32_t i = 0; i < 1000; ++i) {
      const uint32_t digits[3] = {'0' + i / 100, '0' + i / 10 % 10, '0' + i % 10};
      const uint32_t count = i >= 100 ? 3 : i >= 10 ? 2 : 1;
      for (uint32_t j = 0; j < count; ++j) text[i] |= digits[3 - count + j] << (8 * j);
      text[i] |= count << 24;
    }
  }
};
inline constexpr SmallNumbers kSmallNumbers;
#endif

// REQUIRES: 10 <= value < 1000; 4 bytes at `out`. 205 / 2048 and 41 / 4096 are a tenth and a
// hundredth, rounded down.
WC_HD inline uint8_t* put_small(uint32_t value, uint8_t* out) {
#if !defined(__CUDA_ARCH__)
  const uint32_t text = kSmallNumbers.text[value];
  store_as(out, text);
  return out + (text >> 24);
#else
  const uint32_t tens = value * 205 >> 11;
  const uint32_t hundreds = value * 41 >> 12;
  *out = static_cast<uint8_t>('0' + hundreds);
  out += value >= 100 ? 1 : 0;
  out[0] = static_cast<uint8_t>('0' + (tens - 10 * hundreds));
  out[1] = static_cast<uint8_t>('0' + (value - 10 * tens));
  return out + 2;
#endif
}

inline constexpr uint64_t kAsciiZeros = 0x3030303030303030;

// Writes eight digits, leading zeros included.
WC_HD inline uint8_t* put_block(uint32_t value, uint8_t* out) {
  store_as(out, digits_of(value) | kAsciiZeros);
  return out + 8;
}

// Writes the digits without leading zeros. REQUIRES: 0 < value < kBlock; 8 bytes at `out`.
WC_HD inline uint8_t* put_first_block(uint32_t value, uint8_t* out) {
  const uint64_t digits = digits_of(value);
  const uint32_t zeros = lowest_bit(digits) / 8;
  store_as(out, (digits | kAsciiZeros) >> 8 * zeros);
  return out + 8 - zeros;
}

}  // namespace number_detail

namespace number_detail {

// REQUIRES: value >= 1000.
WC_HD inline uint8_t* put_long(uint64_t value, uint8_t* out) {
  if (WC_LIKELY(value < kBlock)) {
    return put_first_block(static_cast<uint32_t>(value), out);
  }
  const uint64_t upper = value / kBlock;
  if (upper < kBlock) {
    out = put_first_block(static_cast<uint32_t>(upper), out);
  } else {
    out = put_first_block(static_cast<uint32_t>(upper / kBlock), out);
    out = put_block(static_cast<uint32_t>(upper % kBlock), out);
  }
  return put_block(static_cast<uint32_t>(value % kBlock), out);
}

}  // namespace number_detail

// Writes `value` in decimal; returns the end. REQUIRES: kDigitsOfU64Max bytes at `out`; all of them
// may be written.
WC_HD inline uint8_t* format_u64(uint64_t value, uint8_t* out) {
  if (value < 10) {
    *out = static_cast<uint8_t>('0' + value);
    return out + 1;
  }
  if (value < 1000) return number_detail::put_small(static_cast<uint32_t>(value), out);
  return number_detail::put_long(value, out);
}

// Writes `value` in decimal, with a '-' if negative; returns the end. REQUIRES: 21 bytes at `out`;
// all of them may be written.
WC_HD inline uint8_t* format_i64(int64_t value, uint8_t* out) {
  if (value >= 0) return format_u64(static_cast<uint64_t>(value), out);
  *out = '-';
  return format_u64(~static_cast<uint64_t>(value) + 1, out + 1);
}

}  // namespace warpcache
