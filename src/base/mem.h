// SPDX-License-Identifier: Apache-2.0
//
// Copies, compares and loads bytes of any alignment, and converts from and to network byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/bytes.h"
#include "base/hd.h"

#if defined(__SSE2__) && !defined(__CUDA_ARCH__)
#define WC_MEM_SSE2 1
#include <emmintrin.h>
#else
#define WC_MEM_SSE2 0
#endif

namespace warpcache {

namespace detail {

#if defined(__CUDA_ARCH__)
// An unaligned load on the device is a load for each byte. Loading the aligned words around it
// takes fewer; they never cross into another page.
__device__ inline uint32_t load_unaligned32(const void* from) {
  const auto address = reinterpret_cast<uintptr_t>(from);
  const auto* words = reinterpret_cast<const uint32_t*>(address & ~uintptr_t{3});
  const uint32_t shift = static_cast<uint32_t>(address % 4) * 8;
  return shift == 0 ? words[0] : __funnelshift_r(words[0], words[1], shift);
}
__device__ inline uint64_t load_unaligned64(const void* from) {
  const auto address = reinterpret_cast<uintptr_t>(from);
  const auto* words = reinterpret_cast<const uint32_t*>(address & ~uintptr_t{3});
  const uint32_t shift = static_cast<uint32_t>(address % 4) * 8;
  const uint32_t last = shift == 0 ? 0 : words[2];
  const uint32_t low = __funnelshift_r(words[0], words[1], shift);
  const uint32_t high = __funnelshift_r(words[1], last, shift);
  return uint64_t{high} << 32 | low;
}
#endif

#if WC_MEM_SSE2
// All ones where the bytes of two blocks of 16 are equal.
inline __m128i equal_bytes(const uint8_t* a, const uint8_t* b) {
  return _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a)),
                        _mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
}
inline void copy_block(uint8_t* to, const uint8_t* from) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
template <size_t... kBlock>
inline void zero_blocks(uint8_t* to, std::index_sequence<kBlock...> /*blocks*/) {
  (_mm_storeu_si128(reinterpret_cast<__m128i*>(to) + kBlock, _mm_setzero_si128()), ...);
}
#endif

}  // namespace detail

template <typename T>
WC_HD inline T load_as(const void* from) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, uint32_t>) return detail::load_unaligned32(from);
  if constexpr (std::is_same_v<T, uint64_t>) return detail::load_unaligned64(from);
#endif
  T value;
  __builtin_memcpy(&value, from, sizeof(T));
  return value;
}

// REQUIRES: `from` is a multiple of sizeof(T).
template <typename T>
WC_HD inline T load_aligned(const void* from) {
  T value;
  __builtin_memcpy(&value, __builtin_assume_aligned(from, sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
WC_HD inline void store_as(void* to, T value) {
  __builtin_memcpy(to, &value, sizeof(T));
}

// REQUIRES: the ranges do not overlap. With size 0 the pointers may be null.
WC_HD inline void mem_copy(void* to, const void* from, size_t size) {
  if (size != 0) __builtin_memcpy(to, from, size);
}

// Sets a small object to 0, in blocks of 16 bytes. (For `object = {}` compilers may make a string
// instruction, which starts slowly.)
template <typename T>
WC_HD inline void set_zero(T& object) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0);
  static_assert(sizeof(T) >= 16 && sizeof(T) <= 256);
#if WC_MEM_SSE2
  auto* const out = reinterpret_cast<uint8_t*>(&object);
  detail::zero_blocks(out, std::make_index_sequence<sizeof(T) / 16>{});
  if constexpr (sizeof(T) % 16 != 0) store_as(out + sizeof(T) - 8, uint64_t{0});
#else
  object = T{};
#endif
}

// Copies fewer than 16 bytes without a function call, in two words that may overlap; of up to 3
// bytes the first, the middle and the last. A device loads unaligned words byte by byte.
WC_HD inline void mem_copy_below_16(void* to, const void* from, size_t size) {
  auto* out = static_cast<uint8_t*>(to);
  const auto* in = static_cast<const uint8_t*>(from);
  if (size >= 8) {
    const uint64_t last = load_as<uint64_t>(in + size - 8);
    store_as(out, load_as<uint64_t>(in));
    store_as(out + size - 8, last);
    return;
  }
#if !defined(__CUDA_ARCH__)
  if (size >= 4) {
    const uint32_t last = load_as<uint32_t>(in + size - 4);
    store_as(out, load_as<uint32_t>(in));
    store_as(out + size - 4, last);
  } else if (size != 0) {
    const uint8_t middle = in[size / 2];
    const uint8_t last = in[size - 1];
    out[0] = in[0];
    out[size / 2] = middle;
    out[size - 1] = last;
  }
#else
  for (size_t at = 0; at < size; ++at) out[at] = in[at];
#endif
}

// mem_copy() for short ranges such as keys: no function call, 16 bytes a step; the last step
// overlaps the one before it.
WC_HD inline void mem_copy_short(void* to, const void* from, size_t size) {
  auto* out = static_cast<uint8_t*>(to);
  const auto* in = static_cast<const uint8_t*>(from);
  struct Block {
    uint64_t word[2];
  };
  if (size >= 16) {
    store_as(out, load_as<Block>(in));
    for (size_t at = 16; at + 16 < size; at += 16) store_as(out + at, load_as<Block>(in + at));
    store_as(out + size - 16, load_as<Block>(in + size - 16));
  } else {
    mem_copy_below_16(to, from, size);
  }
}

// mem_copy() for ranges that are often short, such as values on the host: up to 128 bytes without a
// function call. In blocks from both ends, which may overlap.
WC_HD inline void mem_copy_often_short(void* to, const void* from, size_t size) {
#if WC_MEM_SSE2
  auto* const out = static_cast<uint8_t*>(to);
  const auto* const in = static_cast<const uint8_t*>(from);
  if (size < 16) return mem_copy_below_16(to, from, size);
  if (size > 128) return mem_copy(to, from, size);
  uint8_t* const out_end = out + size;
  const uint8_t* const in_end = in + size;
  if (size > 64) {
    detail::copy_block(out + 32, in + 32);
    detail::copy_block(out + 48, in + 48);
    detail::copy_block(out_end - 64, in_end - 64);
    detail::copy_block(out_end - 48, in_end - 48);
  }
  if (size > 32) {
    detail::copy_block(out + 16, in + 16);
    detail::copy_block(out_end - 32, in_end - 32);
  }
  detail::copy_block(out, in);
  detail::copy_block(out_end - 16, in_end - 16);
#else
  mem_copy(to, from, size);
#endif
}

// mem_copy() for ranges that may be long, such as values. The device copies a word a step and keeps
// several loads in flight.
WC_HD inline void mem_copy_long(void* to, const void* from, size_t size) {
#if defined(__CUDA_ARCH__)
  constexpr size_t kStep = 4;
  auto* out = static_cast<uint8_t*>(to);
  const auto* in = static_cast<const uint8_t*>(from);
  size_t at = 0;
  for (; at < size && reinterpret_cast<uintptr_t>(out + at) % 4 != 0; ++at) out[at] = in[at];
  for (; at + 4 * kStep <= size; at += 4 * kStep) {
    uint32_t words[kStep];
#pragma unroll
    for (size_t i = 0; i < kStep; ++i) words[i] = detail::load_unaligned32(in + at + 4 * i);
#pragma unroll
    for (size_t i = 0; i < kStep; ++i) *reinterpret_cast<uint32_t*>(out + at + 4 * i) = words[i];
  }
  for (; at < size; ++at) out[at] = in[at];
#else
  mem_copy(to, from, size);
#endif
}

// Copies `count` blocks of 16 bytes. REQUIRES: both ranges start at a multiple of 16.
WC_HD inline void mem_copy_granules(void* to, const void* from, size_t count) {
#if defined(__CUDA_ARCH__)
  struct alignas(16) Block {
    uint64_t word[2];
  };
  constexpr size_t kStep = 4;  // loads in flight
  auto* out = static_cast<Block*>(to);
  const auto* in = static_cast<const Block*>(from);
  Block blocks[kStep];
  size_t at = 0;
  for (; at + kStep <= count; at += kStep) {
#pragma unroll
    for (size_t i = 0; i < kStep; ++i) blocks[i] = in[at + i];
#pragma unroll
    for (size_t i = 0; i < kStep; ++i) out[at + i] = blocks[i];
  }
  for (; at < count; ++at) out[at] = in[at];
#else
  mem_copy(to, from, count * 16);
#endif
}

// Whether `size` bytes are equal. For keys, which are short: no function call, 16 bytes a step on
// x86 and 8 elsewhere; the last step overlaps the one before it.
WC_HD inline bool mem_equal(const void* a, const void* b, size_t size) {
  const auto* left = static_cast<const uint8_t*>(a);
  const auto* right = static_cast<const uint8_t*>(b);
#if WC_MEM_SSE2
  if (size >= 16) {
    __m128i equal = _mm_and_si128(detail::equal_bytes(left, right),
                                  detail::equal_bytes(left + size - 16, right + size - 16));
    for (size_t at = 16; at + 16 < size; at += 16) {
      equal = _mm_and_si128(equal, detail::equal_bytes(left + at, right + at));
    }
    return _mm_movemask_epi8(equal) == 0xffff;
  }
#endif
  if (size >= 8) {
    for (size_t at = 0; at + 8 < size; at += 8) {
      if (load_as<uint64_t>(left + at) != load_as<uint64_t>(right + at)) return false;
    }
    return load_as<uint64_t>(left + size - 8) == load_as<uint64_t>(right + size - 8);
  }
  if (size >= 4) {
    return load_as<uint32_t>(left) == load_as<uint32_t>(right) &&
           load_as<uint32_t>(left + size - 4) == load_as<uint32_t>(right + size - 4);
  }
  for (size_t at = 0; at < size; ++at) {
    if (left[at] != right[at]) return false;
  }
  return true;
}

WC_HD inline bool equal(Bytes a, Bytes b) {
  return a.size == b.size && mem_equal(a.data, b.data, a.size);
}

// The bytes of a string literal from `at` on, as load_as() would load them. The compiler computes
// them, so they need no memory access.
template <typename T, size_t kSize>
WC_HD inline T literal_word(const char (&text)[kSize], size_t at) {
  T word = 0;
#if defined(__CUDA_ARCH__)
  WC_UNROLL
  for (size_t i = 0; i < sizeof(T); ++i) word |= T{static_cast<uint8_t>(text[at + i])} << (8 * i);
#else
  __builtin_memcpy(&word, text + at, sizeof(T));
#endif
  return word;
}

// Compares with a string literal without its terminator.
template <size_t kSize>
WC_HD inline bool equal(Bytes a, const char (&text)[kSize]) {
  constexpr size_t kBytes = kSize - 1;
  if (a.size != kBytes) return false;
  if constexpr (kBytes >= 8) {
    WC_UNROLL
    for (size_t at = 0; at + 8 < kBytes; at += 8) {
      if (load_as<uint64_t>(a.data + at) != literal_word<uint64_t>(text, at)) return false;
    }
    return load_as<uint64_t>(a.data + kBytes - 8) == literal_word<uint64_t>(text, kBytes - 8);
  } else if constexpr (kBytes >= 4) {
    return load_as<uint32_t>(a.data) == literal_word<uint32_t>(text, 0) &&
           load_as<uint32_t>(a.data + kBytes - 4) == literal_word<uint32_t>(text, kBytes - 4);
  } else {
    WC_UNROLL
    for (size_t at = 0; at < kBytes; ++at) {
      if (a.data[at] != static_cast<uint8_t>(text[at])) return false;
    }
    return true;
  }
}

// Appends a string literal without its terminator; returns the new end.
template <size_t kSize>
WC_HD inline uint8_t* put(uint8_t* out, const char (&text)[kSize]) {
  __builtin_memcpy(out, text, kSize - 1);
  return out + (kSize - 1);
}

WC_HD inline uint8_t* put(uint8_t* out, Bytes bytes) {
  mem_copy(out, bytes.data, bytes.size);
  return out + bytes.size;
}

WC_HD inline uint8_t* put_short(uint8_t* out, Bytes bytes) {
  mem_copy_short(out, bytes.data, bytes.size);
  return out + bytes.size;
}

WC_HD inline uint8_t* put_often_short(uint8_t* out, Bytes bytes) {
  mem_copy_often_short(out, bytes.data, bytes.size);
  return out + bytes.size;
}

// Integers in network byte order. Compilers turn the shifts into one instruction.
WC_HD inline uint16_t load_big16(const void* from) {
  const auto* at = static_cast<const uint8_t*>(from);
  return static_cast<uint16_t>(at[0] << 8 | at[1]);
}
WC_HD inline uint32_t load_big32(const void* from) {
  const auto* at = static_cast<const uint8_t*>(from);
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 |
         static_cast<uint32_t>(at[2]) << 8 | at[3];
}
WC_HD inline uint64_t load_big64(const void* from) {
  const auto* at = static_cast<const uint8_t*>(from);
  return static_cast<uint64_t>(load_big32(at)) << 32 | load_big32(at + 4);
}
WC_HD inline void store_big16(void* to, uint16_t value) {
  auto* at = static_cast<uint8_t*>(to);
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}
WC_HD inline void store_big32(void* to, uint32_t value) {
  store_big16(to, static_cast<uint16_t>(value >> 16));
  store_big16(static_cast<uint8_t*>(to) + 2, static_cast<uint16_t>(value));
}
WC_HD inline void store_big64(void* to, uint64_t value) {
  store_big32(to, static_cast<uint32_t>(value >> 32));
  store_big32(static_cast<uint8_t*>(to) + 4, static_cast<uint32_t>(value));
}

}  // namespace warpcache
