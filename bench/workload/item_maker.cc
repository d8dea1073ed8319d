// SPDX-License-Identifier: Apache-2.0
#include "workload/item_maker.h"

#include <algorithm>
#include <cstring>

#include "workload/random.h"

namespace warpcache::bench {
namespace {

constexpr uint64_t kValueStep = 0x9e3779b97f4a7c15;

uint64_t word(uint64_t base, uint32_t index) {
  const uint64_t x = (base + index * kValueStep) * 0xd6e8feb86659fd93;
  return x ^ (x >> 29);
}

// Eight digits of 32, five bits each, as the bytes of a word: a to z, then 0 to 5.
uint64_t digits(uint64_t bits) {
  uint64_t x = (bits & 0xfffff) | ((bits & 0xfffff00000) << 12);
  x = (x & 0x000003ff000003ff) | ((x << 6) & 0x03ff000003ff0000);
  x = (x & 0x001f001f001f001f) | ((x << 3) & 0x1f001f001f001f00);
  constexpr uint64_t kEach = 0x0101010101010101;
  const uint64_t beyond_z = ((x + kEach * (128 - 26)) >> 7) & kEach;
  return x + kEach * 'a' - beyond_z * ('a' + 26 - '0');
}

}  // namespace

void ItemMaker::write_key(uint64_t id, uint32_t size, char* out) const {
  uint64_t text = digits(id);
  std::memcpy(out, &text, sizeof text);
  for (uint32_t at = sizeof text; at < size; at += sizeof text) {
    text = digits(mix(seed_, id, at));
    std::memcpy(out + at, &text, std::min<size_t>(sizeof text, size - at));
  }
}

void ItemMaker::write_value(uint64_t id, uint32_t version, uint32_t size, char* out) const {
  const uint64_t base = mix(seed_, id, uint64_t{version} << 32);
  uint32_t at = 0;
  for (; at + 8 <= size; at += 8) {
    const uint64_t bytes = word(base, at);
    std::memcpy(out + at, &bytes, 8);
  }
  const uint64_t bytes = word(base, at);
  std::memcpy(out + at, &bytes, size - at);
}

bool ItemMaker::value_is(uint64_t id, uint32_t version, const char* value, uint32_t size) const {
  const uint64_t base = mix(seed_, id, uint64_t{version} << 32);
  uint64_t difference = 0;
  uint32_t at = 0;
  for (; at + 8 <= size; at += 8) {
    uint64_t bytes;
    std::memcpy(&bytes, value + at, 8);
    difference |= bytes ^ word(base, at);
  }
  const uint64_t bytes = word(base, at);
  return difference == 0 && (at == size || std::memcmp(value + at, &bytes, size - at) == 0);
}

uint32_t ItemMaker::flags(uint64_t id, uint32_t version) const {
  const uint32_t low = version & 0xffff;
  return (low << 16) | static_cast<uint32_t>(mix(seed_, id, (uint64_t{low} << 32) + 3) & 0xffff);
}

bool ItemMaker::version_of(uint64_t id, uint32_t stored, uint32_t* version) const {
  *version = stored >> 16;
  return flags(id, *version) == stored;
}

}  // namespace warpcache::bench
