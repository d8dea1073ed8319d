// SPDX-License-Identifier: Apache-2.0
// Keys and values as functions of numbers, so that every value that comes back can be checked
// whole.
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

  // Writes the value of `id` in its `version`. Another version has another value (where there are
  // bytes enough to tell).
  void write_value(uint64_t id, uint32_t version, uint32_t size, char* out) const;

  bool value_is(uint64_t id, uint32_t version, const char* value, uint32_t size) const;

  // Flags to store with the value. They name the version in their upper half; the lower half tells
  // whose they are.
  uint32_t flags(uint64_t id, uint32_t version) const;

  // The lower 16 bits of the version that the flags `stored` name. False if they are not those of
  // `id`.
  bool version_of(uint64_t id, uint32_t stored, uint32_t* version) const;

 private:
  uint64_t seed_;
};

}  // namespace warpcache::bench

#endif  // WARPCACHE_BENCH_WORKLOAD_ITEM_MAKER_H_
