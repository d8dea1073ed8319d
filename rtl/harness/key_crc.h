// SPDX-License-Identifier: Apache-2.0
//
// The hashes of key_hash, byte by byte.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace warpcache::rtl {

inline constexpr uint32_t kRowPolynomial = 0x82f63b78;  // CRC-32C, reflected
inline constexpr uint32_t kTagPolynomial = 0xeb31d82e;  // CRC-32K, reflected

// A table-driven CRC, as of a stream of bytes, least significant bit first.
inline uint32_t crc(const std::string& bytes, uint32_t state, uint32_t polynomial) {
  std::array<uint32_t, 256> table;
  for (uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit)
      table[i] = table[i] >> 1 ^ ((table[i] & 1) != 0 ? polynomial : 0);
  }
  for (const char byte : bytes)
    state = state >> 8 ^ table[(state ^ static_cast<uint8_t>(byte)) & 0xff];
  return state;
}

// Of a key, filled up to whole words; its length is where the CRC begins.
inline uint32_t key_crc(std::string key, uint32_t polynomial) {
  const auto start = static_cast<uint32_t>(~key.size());
  key.resize((key.size() + 7) / 8 * 8, '\0');
  return crc(key, start, polynomial);
}

}  // namespace warpcache::rtl
