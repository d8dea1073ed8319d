// SPDX-License-Identifier: Apache-2.0
//
// The parameters of the core that a program simulates (docs/rtl.md): rtl/CMakeLists.txt says those
// that are not the default.
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef RTL_ROW_BITS
#define RTL_ROW_BITS 11
#endif
#ifndef RTL_WAYS
#define RTL_WAYS 8
#endif
#ifndef RTL_KEY_MAX
#define RTL_KEY_MAX 250
#endif
#ifndef RTL_VALUE_MAX
#define RTL_VALUE_MAX 1536
#endif
#ifndef RTL_HOST
#define RTL_HOST 0
#endif

namespace warpcache::rtl {

inline constexpr bool kHasHost = RTL_HOST != 0;
inline constexpr uint32_t kKeyMax = RTL_KEY_MAX;  // bytes
inline constexpr uint32_t kValueMax = RTL_VALUE_MAX;
inline constexpr uint32_t kItems =
    (uint32_t{1} << RTL_ROW_BITS) * RTL_WAYS;  // that the index holds

// Words of a half of a slot: header, key and value, and a power of 2 above them.
constexpr uint32_t half_words() {
  uint32_t words = 1;
  while (words <= 3 + (kKeyMax + 7) / 8 + (kValueMax + 7) / 8) words *= 2;
  return words;
}
inline constexpr size_t kMemoryWords = size_t{kItems} * 2 * half_words();

}  // namespace warpcache::rtl
