// SPDX-License-Identifier: Apache-2.0
//
// Positions of bits, and rounding.
#pragma once

#include <cstdint>

#include "base/hd.h"

namespace warpcache {

// REQUIRES of all four: mask != 0.
WC_HD inline uint32_t lowest_bit(uint32_t mask) {
#if defined(__CUDA_ARCH__)
  return static_cast<uint32_t>(__ffs(static_cast<int>(mask))) - 1;
#else
  return static_cast<uint32_t>(__builtin_ctz(mask));
#endif
}

WC_HD inline uint32_t lowest_bit(uint64_t mask) {
#if defined(__CUDA_ARCH__)
  return static_cast<uint32_t>(__ffsll(static_cast<long long>(mask))) - 1;
#else
  return static_cast<uint32_t>(__builtin_ctzll(mask));
#endif
}

WC_HD inline uint32_t highest_bit(uint32_t mask) {
#if defined(__CUDA_ARCH__)
  return 31 - static_cast<uint32_t>(__clz(static_cast<int>(mask)));
#else
  return 31 - static_cast<uint32_t>(__builtin_clz(mask));
#endif
}

WC_HD inline uint32_t highest_bit(uint64_t mask) {
#if defined(__CUDA_ARCH__)
  return 63 - static_cast<uint32_t>(__clzll(static_cast<long long>(mask)));
#else
  return 63 - static_cast<uint32_t>(__builtin_clzll(mask));
#endif
}

// The quotient, rounded up. REQUIRES: `size` is not 0, and value + size - 1 does not overflow.
template <typename T>
WC_HD constexpr T divided_up(T value, T size) {
  return (value + size - 1) / size;
}

// The next multiple of `size`, or the value. REQUIRES: as divided_up().
template <typename T>
WC_HD constexpr T rounded_up(T value, T size) {
  return divided_up(value, size) * size;
}

}  // namespace warpcache
