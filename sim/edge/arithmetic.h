// SPDX-License-Identifier: Apache-2.0
// What one lane computes. Registers hold their value in the low bits, the others are 0.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "edge/ptx.h"

namespace warpcache::edge_sim {

inline uint64_t truncate(uint64_t value, uint32_t bits) {
  return bits >= 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

inline uint64_t extend(uint64_t value, uint32_t bits) {
  if (bits >= 64) return value;
  const uint64_t sign = uint64_t{1} << (bits - 1);
  return (truncate(value, bits) ^ sign) - sign;
}

inline float as_float(uint64_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value)); }
inline uint64_t of_float(float value) { return std::bit_cast<uint32_t>(value); }

template <typename T>
bool holds(Compare compare, T a, T b) {
  switch (compare) {
    case Compare::kEq:
      return a == b;
    case Compare::kNe:
      return a != b;
    case Compare::kLt:
      return a < b;
    case Compare::kLe:
      return a <= b;
    case Compare::kGt:
      return a > b;
    case Compare::kGe:
      return a >= b;
  }
  return false;
}

inline uint64_t compute_float(const Instruction& one, const float a, const float b, const float c) {
  switch (one.op) {
    case Op::kAdd:
      return of_float(a + b);
    case Op::kSub:
      return of_float(a - b);
    case Op::kMul:
      return of_float(a * b);
    case Op::kMad:
      return of_float(std::fmaf(a, b, c));
    case Op::kDiv:
      return of_float(a / b);
    case Op::kMin:
      return of_float(std::fmin(a, b));
    case Op::kMax:
      return of_float(std::fmax(a, b));
    case Op::kNeg:
      return of_float(-a);
    case Op::kAbs:
      return of_float(std::fabs(a));
    case Op::kSqrt:
      return of_float(std::sqrt(a));
    case Op::kRcp:
      return of_float(1.0f / a);
    default:
      return of_float(a);
  }
}

inline uint64_t convert(const Instruction& one, uint64_t in) {
  if (one.from.is_float && one.type.is_float) return in;
  if (one.type.is_float) {
    const uint64_t wide =
        one.from.is_signed ? extend(in, one.from.bits) : truncate(in, one.from.bits);
    return of_float(one.from.is_signed ? static_cast<float>(static_cast<int64_t>(wide))
                                       : static_cast<float>(wide));
  }
  if (one.from.is_float) {
    const float value = as_float(in);
    if (!(std::fabs(value) < 9e18f)) return 0;
    return truncate(static_cast<uint64_t>(static_cast<int64_t>(value)), one.type.bits);
  }
  return truncate(one.from.is_signed ? extend(in, one.from.bits) : truncate(in, one.from.bits),
                  one.type.bits);
}

// The product's high or wide part by 128 bits.
inline uint64_t multiply(const Instruction& one, uint64_t a, uint64_t b) {
  const uint32_t bits = one.from.bits;
  if (one.half == Half::kLow) return a * b;
  using Wide = unsigned __int128;
  const Wide product =
      one.from.is_signed
          ? static_cast<Wide>(static_cast<__int128>(static_cast<int64_t>(extend(a, bits))) *
                              static_cast<int64_t>(extend(b, bits)))
          : Wide{truncate(a, bits)} * truncate(b, bits);
  return static_cast<uint64_t>(one.half == Half::kHigh ? product >> bits : product);
}

inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t out = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t pick = selector >> (4 * i) & 15;
    uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (pick & 7))) & 255;
    if ((pick & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
    out |= byte << (8 * i);
  }
  return out;
}

inline uint64_t insert_bits(uint64_t a, uint64_t b, uint64_t position, uint64_t length,
                            uint32_t bits) {
  if (position >= bits) return b;
  const uint64_t mask = truncate(length >= 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1, bits)
                        << position;
  return (b & ~mask) | ((a << position) & mask);
}

inline uint64_t reverse_bits(uint64_t value, uint32_t bits) {
  uint64_t out = 0;
  for (uint32_t i = 0; i < bits; ++i) out |= (value >> i & 1) << (bits - 1 - i);
  return out;
}

inline uint64_t shift(const Instruction& one, uint64_t a, uint64_t count) {
  const uint32_t bits = one.type.bits;
  count = truncate(count, 32);
  if (one.op == Op::kShl) return count >= bits ? 0 : a << count;
  if (one.type.is_signed) {
    return static_cast<uint64_t>(static_cast<int64_t>(extend(a, bits)) >>
                                 (count >= bits ? bits - 1 : count));
  }
  return count >= bits ? 0 : truncate(a, bits) >> count;
}

inline uint64_t compute_integer(const Instruction& one, const uint64_t* in) {
  const uint32_t bits = one.type.bits;
  const uint64_t a = truncate(in[0], one.from.bits), b = truncate(in[1], one.from.bits);
  const bool is_signed = one.type.is_signed;
  const auto sa = static_cast<int64_t>(extend(a, bits)), sb = static_cast<int64_t>(extend(b, bits));
  switch (one.op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return multiply(one, a, b);
    case Op::kMad:
      return multiply(one, a, b) + in[2];
    case Op::kDiv:
      if (b == 0) return ~uint64_t{0};
      return is_signed ? (sb == -1 ? -a : static_cast<uint64_t>(sa / sb)) : a / b;
    case Op::kRem:
      if (b == 0) return a;
      return is_signed ? (sb == -1 ? 0 : static_cast<uint64_t>(sa % sb)) : a % b;
    case Op::kMin:
      return is_signed ? (sa < sb ? a : b) : (a < b ? a : b);
    case Op::kMax:
      return is_signed ? (sa > sb ? a : b) : (a > b ? a : b);
    case Op::kAnd:
      return a & b;
    case Op::kOr:
      return a | b;
    case Op::kXor:
      return a ^ b;
    case Op::kNot:
      return ~a;
    case Op::kNeg:
      return -a;
    case Op::kAbs:
      return sa < 0 ? -a : a;
    case Op::kShl:
    case Op::kShr:
      return shift(one, a, in[1]);
    case Op::kShf: {
      const uint32_t count = in[2] & 31;
      const uint64_t both = b << 32 | a;
      return one.left ? (both << count) >> 32 : both >> count;
    }
    case Op::kBfi:
      return insert_bits(a, truncate(in[1], bits), in[2] & 255, in[3] & 255, bits);
    case Op::kPrmt:
      return permute_bytes(static_cast<uint32_t>(a), static_cast<uint32_t>(b),
                           static_cast<uint32_t>(in[2]));
    case Op::kClz:
      return a == 0 ? bits : static_cast<uint64_t>(std::countl_zero(a)) - (64 - bits);
    case Op::kBrev:
      return reverse_bits(a, bits);
    case Op::kBfind: {
      if (a == 0) return ~uint64_t{0};
      const uint64_t top = 63 - static_cast<uint64_t>(std::countl_zero(a));
      return one.left ? bits - 1 - top : top;
    }
    default:
      return a;
  }
}

// The result of any instruction that does not touch memory or control.
inline uint64_t compute(const Instruction& one, const uint64_t* in) {
  if (one.op == Op::kSelp)
    return (in[2] & 1) != 0 ? truncate(in[0], one.type.bits) : truncate(in[1], one.type.bits);
  if (one.op == Op::kCvt) return convert(one, in[0]);
  if (one.op == Op::kSetp) {
    if (one.type.is_float) return holds(one.compare, as_float(in[0]), as_float(in[1]));
    const uint32_t bits = one.type.bits;
    if (!one.type.is_signed)
      return holds(one.compare, truncate(in[0], bits), truncate(in[1], bits));
    return holds(one.compare, static_cast<int64_t>(extend(in[0], bits)),
                 static_cast<int64_t>(extend(in[1], bits)));
  }
  if (one.type.is_float && one.op != Op::kMov) {
    return compute_float(one, as_float(in[0]), as_float(in[1]), as_float(in[2]));
  }
  return truncate(compute_integer(one, in), one.type.bits);
}

inline uint64_t apply_atomic(const Instruction& one, uint64_t before, uint64_t a, uint64_t b) {
  const uint32_t bits = one.type.bits;
  a = truncate(a, bits);
  switch (one.atom) {
    case Atom::kAdd:
      return one.type.is_float ? of_float(as_float(before) + as_float(a))
                               : truncate(before + a, bits);
    case Atom::kExchange:
      return a;
    case Atom::kCompareSwap:
      return before == a ? truncate(b, bits) : before;
    case Atom::kOr:
      return before | a;
    case Atom::kAnd:
      return before & a;
    case Atom::kMin:
      return one.type.is_signed ? (static_cast<int64_t>(extend(a, bits)) <
                                           static_cast<int64_t>(extend(before, bits))
                                       ? a
                                       : before)
                                : std::min(before, a);
    case Atom::kMax:
      return one.type.is_signed ? (static_cast<int64_t>(extend(a, bits)) >
                                           static_cast<int64_t>(extend(before, bits))
                                       ? a
                                       : before)
                                : std::max(before, a);
  }
  return before;
}

}  // namespace warpcache::edge_sim
