// SPDX-License-Identifier: Apache-2.0
#include "stress/value.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace warpcache::stress {

namespace {

constexpr uint64_t kBase = 0x9e3779b97f4a7c15;  // odd, so that every byte counts

constexpr size_t kStep = 8;

constexpr std::array<uint64_t, kStep + 1> make_powers() {
  std::array<uint64_t, kStep + 1> powers = {1};
  for (size_t i = 1; i <= kStep; ++i) powers[i] = powers[i - 1] * kBase;
  return powers;
}
constexpr std::array<uint64_t, kStep + 1> kPowers = make_powers();

uint64_t power(uint32_t exponent) {
  uint64_t result = 1;
  for (uint64_t square = kBase; exponent != 0; exponent >>= 1, square *= square) {
    if ((exponent & 1) != 0) result *= square;
  }
  return result;
}

uint64_t term(char byte) { return static_cast<uint64_t>(static_cast<uint8_t>(byte)) + 1; }

// A block of bytes; values are pieces of it.
constexpr size_t kBlockSize = 1 << 16;
const std::string& block() {
  static const std::string bytes = [] {
    std::string made(kBlockSize, '\0');
    uint64_t state = 1;
    for (char& byte : made) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<char>('A' + (state >> 33) % 58);
    }
    return made;
  }();
  return bytes;
}

}  // namespace

Value value_of(std::string_view bytes) {
  uint64_t hash = 0;
  size_t at = 0;
  for (; at + kStep <= bytes.size(); at += kStep) {
    uint64_t sum = 0;
    for (size_t i = 0; i < kStep; ++i) sum += term(bytes[at + i]) * kPowers[kStep - 1 - i];
    hash = hash * kPowers[kStep] + sum;
  }
  for (; at < bytes.size(); ++at) hash = hash * kBase + term(bytes[at]);
  Value value;
  value.hash = hash;
  value.size = static_cast<uint32_t>(bytes.size());
  return value;
}

Value concatenate(const Value& front, const Value& back) {
  Value value;
  value.hash = front.hash * power(back.size) + back.hash;
  value.size = front.size + back.size;
  return value;
}

Value number_value(uint64_t number, uint32_t size) {
  std::string text = std::to_string(number);
  if (text.size() < size) text.resize(size, ' ');
  Value value = value_of(text);
  value.is_number = true;
  value.number = number;
  return value;
}

std::string make_value(uint64_t id, uint32_t size) {
  std::string value = "v" + std::to_string(id) + ":";
  size_t from = id * 31 % kBlockSize;
  while (value.size() < size) {
    const size_t count = std::min(size - value.size(), kBlockSize - from);
    value.append(block(), from, count);
    from = 0;
  }
  return value;
}

}  // namespace warpcache::stress
