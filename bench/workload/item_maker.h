// SPDX-License-Identifier: Apache-2.0
// Keys and values as functions of numbers, so that every byte of a returned value can be checked.
#ifndef WARPCACHE_BENCH_WORKLOAD_ITEM_MAKER_H_
#define WARPCACHE_BENCH_WORKLOAD_ITEM_MAKER_H_

#include <cstdint>
#include <cstring>

#include "base/mem.h"
#include "workload/random.h"
#include "workload/sizes.h"

namespace warpcache::bench {

class ItemMaker {
 public:
  explicit ItemMaker(uint64_t seed) : mixed_seed_(mix_seed(seed)) {}

  // Writes the key of `id`: `size` printable bytes, different for each id below 2^40.
  // REQUIRES: kKeySizeMin <= size <= kKeySizeMax.
  __attribute__((always_inline)) void write_key(uint64_t id, uint32_t size, char* out) const {
    const uint64_t own = mix(mixed_seed_ + id);
    const Words text = digits(Words{id, mix(own + kWord)});
    if (size < sizeof text) return mem_copy_below_16(out, &text, size);
    std::memcpy(out, &text, sizeof text);
    if (size > sizeof text) write_rest(own, size, out);
  }

  // Writes the value of `id` and `version`. Versions have different values, unless the value is too
  // short for that.
  void write_value(uint64_t id, uint32_t version, uint32_t size, char* out) const;

  bool value_is(uint64_t id, uint32_t version, const char* value, uint32_t size) const;

  // The flags to store with the value: the version in the upper half, a check of the id in the
  // lower half.
  uint32_t flags(uint64_t id, uint32_t version) const {
    const uint32_t low = version & 0xffff;
    return (low << 16) | static_cast<uint32_t>(mixed(id, (uint64_t{low} << 32) + 3) & 0xffff);
  }

  // Reads the lower 16 bits of the version from the flags `stored`. False: they are not flags of
  // `id`.
  bool version_of(uint64_t id, uint32_t stored, uint32_t* version) const {
    *version = stored >> 16;
    return flags(id, *version) == stored;
  }

 private:
  static constexpr uint32_t kWord = sizeof(uint64_t);

  // The key's bytes from the third word on.
  static void write_rest(uint64_t own, uint32_t size, char* out);

  // Two words in a register.
  using Words = uint64_t __attribute__((vector_size(16)));

  // Of each word eight digits of 32, five bits each, as its bytes: a to z, then 0 to 5.
  static Words digits(Words bits) {
    Words x = (bits & 0xfffff) | ((bits & 0xfffff00000) << 12);
    x = (x & 0x000003ff000003ff) | ((x << 6) & 0x03ff000003ff0000);
    x = (x & 0x001f001f001f001f) | ((x << 3) & 0x1f001f001f001f00);
    constexpr uint64_t kEach = 0x0101010101010101;
    const Words beyond_z = ((x + kEach * (128 - 26)) >> 7) & kEach;
    const Words bytes_beyond_z = (beyond_z << 8) - beyond_z;  // all their bits
    return x + kEach * 'a' - (bytes_beyond_z & kEach * ('a' + 26 - '0'));
  }

  // mix(seed, id, what).
  uint64_t mixed(uint64_t id, uint64_t what) const { return mix(mix(mixed_seed_ + id) + what); }

  uint64_t mixed_seed_;
};

}  // namespace warpcache::bench

#endif  // WARPCACHE_BENCH_WORKLOAD_ITEM_MAKER_H_
