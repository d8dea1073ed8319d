// SPDX-License-Identifier: Apache-2.0
#include "workload/item_maker.h"

#include <cstring>

namespace warpcache::bench {
namespace {

constexpr uint64_t kValueStep = 0x9e3779b97f4a7c15;

uint64_t word(uint64_t base, uint32_t index) {
  const uint64_t x = (base + index * kValueStep) * 0xd6e8feb86659fd93;
  return x ^ (x >> 29);
}

}  // namespace

void ItemMaker::write_rest(uint64_t own, uint32_t size, char* out) {
  uint32_t at = sizeof(Words);
  for (;; at += sizeof(Words)) {
    const Words text = digits(Words{mix(own + at), mix(own + at + kWord)});
    if (at + sizeof text > size) return mem_copy_below_16(out + at, &text, size - at);
    std::memcpy(out + at, &text, sizeof text);
    if (at + sizeof text == size) return;
  }
}

void ItemMaker::write_value(uint64_t id, uint32_t version, uint32_t size, char* out) const {
  const uint64_t base = mixed(id, uint64_t{version} << 32);
  uint32_t at = 0;
  for (; at + 8 <= size; at += 8) {
    const uint64_t bytes = word(base, at);
    std::memcpy(out + at, &bytes, 8);
  }
  const uint64_t bytes = word(base, at);
  std::memcpy(out + at, &bytes, size - at);
}

bool ItemMaker::value_is(uint64_t id, uint32_t version, const char* value, uint32_t size) const {
  const uint64_t base = mixed(id, uint64_t{version} << 32);
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

}  // namespace warpcache::bench
