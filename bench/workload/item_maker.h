// SPDX-License-Identifier: Apache-2.0
// Keys and values as functions of numbers, so that every byte of a returned value can be checked.
#ifndef WARPCACHE_BENCH_WORKLOAD_ITEM_MAKER_H_
#define WARPCACHE_BENCH_WORKLOAD_ITEM_MAKER_H_

#include <cstdint>

#include "workload/sizes.h"

namespace warpcache::bench {

class ItemMaker {
 public:
  explicit ItemMaker(uint64_t seed) : seed_(seed) {}

  // Writes the key of `id`: `size` printable bytes, different for each id below 2^40.
  // REQUIRES: kKeySizeMin <= size <= kKeySizeMax.
  void write_key(uint64_t id, uint32_t size, char* out) const;

  // Writes the value of `id` and `version`. Versions have different values, unless the value is too
  // short for that.
  void write_value(uint64_t id, uint32_t version, uint32_t size, char* out) const;

  bool value_is(uint64_t id, uint32_t version, const char* value, uint32_t size) const;

  // The flags to store with the value: the version in the upper half, a check of the id in the
  // lower half.
  uint32_t flags(uint64_t id, uint32_t version) const;

  // Reads the lower 16 bits of the version from the flags `stored`. False: they are not flags of
  // `id`.
  bool version_of(uint64_t id, uint32_t stored, uint32_t* version) const;

 private:
  uint64_t seed_;
};

}  // namespace warpcache::bench

#endif  // WARPCACHE_BENCH_WORKLOAD_ITEM_MAKER_H_
