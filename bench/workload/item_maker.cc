// SPDX-License-Identifier: Apache-2.0
#include "workload/item_maker.h"

#include <cstring>

#include "workload/random.h"

namespace warpcache::bench {
namespace {

constexpr char kDigits[] = "abcdefghijklmnopqrstuvwxyz012345";  // 32: five bits each
constexpr uint64_t kValueStep = 0x9e3779b97f4a7c15;

uint64_t word(uint64_t base, uint32_t index) {
  const uint64_t x = (base + index * kValueStep) * 0xd6e8feb86659fd93;
  return x ^ (x >> 29);
}

}  // namespace

void ItemMaker::write_key(uint64_t id, uint32_t size, char* out) const {
  for (uint32_t i = 0; i < kKeySizeMin; ++i) out[i] = kDigits[(id >> (5 * i)) & 31];
  uint64_t bits = 0;
  for (uint32_t i = kKeySizeMin; i < size; ++i) {
    if ((i - kKeySizeMin) % 12 == 0) bits = mix(seed_, id, i);
    out[i] = kDigits[bits & 31];
    bits >>= 5;
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
