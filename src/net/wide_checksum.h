// SPDX-License-Identifier: Apache-2.0
//
// The Internet checksum of checksum.h for a host: over words of 8 bytes, which lie anywhere. Sums
// of the two kinds are not mixed.
#pragma once

#include <cstdint>

#include "base/mem.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if !defined(__CUDA_ARCH__)  // a device has no use for it
namespace warpcache::net::wide {

// The Internet checksum over words of 64 bits: the carry of each addition is added with the next
// one. Equal modulo 65535 to the sum of 16-bit words, and 0 only if all words are.
#if defined(__x86_64__)
using Word = unsigned long long;  // NOLINT(google-runtime-int): of _addcarry_u64()
template <typename... Words>
__attribute__((always_inline)) inline uint64_t add(uint64_t first, Words... words) {
  Word sum = first;
  unsigned char carry = 0;
  ((carry = _addcarry_u64(carry, sum, Word{words}, &sum)), ...);
  return sum + carry;
}
#else
template <typename... Words>
inline uint64_t add(uint64_t sum, Words... words) {
  ((sum += words, sum += sum < words ? 1 : 0), ...);
  return sum;
}
#endif

// As checksum_fold(): both halves are added, the carry of the lower half included.
inline uint16_t fold(uint64_t sum) {
  sum += sum >> 32 | sum << 32;
  auto half = static_cast<uint32_t>(sum >> 32);
  half += half >> 16 | half << 16;
  return static_cast<uint16_t>(half >> 16);
}

// Adds [at, end). REQUIRES: eight bytes before `end` may be read.
inline uint64_t add_range(uint64_t sum, const uint8_t* at, const uint8_t* end) {
  for (; end - at >= 8; at += 8) sum = add(sum, load_as<uint64_t>(at));
  const auto left = static_cast<uint32_t>(end - at);  // below 8
  return add(sum, load_as<uint64_t>(end - 8) >> (8 * (7 - left)) >> 8);
}

// As udp_checksum() of udp.h: 0 is not sent, since it says that there is no checksum.
inline uint16_t udp_checksum(uint64_t sum) {
  const auto checksum = static_cast<uint16_t>(~fold(sum));
  return checksum != 0 ? checksum : uint16_t{0xffff};
}

}  // namespace warpcache::net::wide
#endif  // !__CUDA_ARCH__
