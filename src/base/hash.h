// SPDX-License-Identifier: Apache-2.0
//
// The hash of a key: 64 well mixed bits with a seed, so that a client that does not know the seed
// cannot choose keys that collide. Pairs of the key's words are multiplied to 128 bits and folded.
// Every bit of the result may be used.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/hd.h"
#include "base/mem.h"

namespace warpcache {

namespace detail {

WC_HD inline uint64_t multiply_fold(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return (a * b) ^ __umul64hi(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#endif
}

inline constexpr uint64_t kHashMix1 = 0x9e3779b97f4a7c15;  // odd, from the golden ratio
inline constexpr uint64_t kHashMix2 = 0xd6e8feb86659fd93;  // odd, bits balanced
inline constexpr uint64_t kHashMix3 = 0xa5a3564e27f8862b;

}  // namespace detail

// A seed, and what follows from it alone: made once for many keys.
struct HashSeed {
  uint64_t value = 0;
  uint64_t salt = 0;
};

WC_HD inline HashSeed make_hash_seed(uint64_t value) {
  return {value, detail::multiply_fold(value ^ detail::kHashMix2, detail::kHashMix1) | 1};
}

WC_HD inline uint64_t hash_key(const HashSeed& seed, Bytes key) {
  using detail::multiply_fold;
  const uint8_t* data = key.data;
  size_t left = key.size;
  const uint64_t salt = seed.salt;
  uint64_t state = seed.value ^ (key.size * detail::kHashMix1);
  while (left > 16) {
    state = multiply_fold(load_as<uint64_t>(data) ^ salt, load_as<uint64_t>(data + 8) ^ state);
    data += 16;
    left -= 16;
  }
  uint64_t first = 0;
  uint64_t second = 0;
  if (left >= 8) {
    first = load_as<uint64_t>(data);
    second = load_as<uint64_t>(data + left - 8);
  } else if (left >= 4) {
    first = load_as<uint32_t>(data);
    second = load_as<uint32_t>(data + left - 4);
  } else if (left > 0) {
    first = data[0] | uint64_t{data[left / 2]} << 8 | uint64_t{data[left - 1]} << 16;
  }
  state = multiply_fold(first ^ salt ^ detail::kHashMix3, second ^ state);
  return multiply_fold(state ^ detail::kHashMix2, salt ^ detail::kHashMix3);
}

WC_HD inline uint64_t hash_key(uint64_t seed, Bytes key) {
  return hash_key(make_hash_seed(seed), key);
}

}  // namespace warpcache
