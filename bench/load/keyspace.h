// SPDX-License-Identifier: Apache-2.0
// The keys of a run, by number: their bytes, their sizes and their values.
#ifndef WARPCACHE_BENCH_LOAD_KEYSPACE_H_
#define WARPCACHE_BENCH_LOAD_KEYSPACE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "workload/item_maker.h"
#include "workload/sizes.h"
#include "workload/trace.h"

namespace warpcache::load {

// Shared by all threads; immutable.
class Keyspace {
 public:
  // Keys that are computed from their numbers. Numbers of `count` and more have different keys too,
  // with the sizes of (number modulo count).
  Keyspace(uint64_t seed, const bench::Sizes& sizes, uint32_t count);

  // The keys of a trace; it must outlive this.
  Keyspace(uint64_t seed, const bench::Trace& trace);

  uint32_t count() const { return count_; }

  uint32_t value_size(uint32_t id) const { return sizes_of(id).value; }
  uint32_t value_size_max() const { return value_size_max_; }

  // Returns the key's size. REQUIRES: `out` has kKeySizeMax bytes.
  __attribute__((always_inline)) uint32_t write_key(uint32_t id, char* out) const {
    uint32_t size = fixed_key_size_;
    if (size == 0) {
      if (trace_ != nullptr) return trace_->write_key(id, out);
      size = sizes_of(id).key;
    }
    maker_.write_key(id, size, out);
    return size;
  }

  bool key_is(uint32_t id, std::string_view key) const {
    char expected[bench::kKeySizeMax];
    return key == std::string_view(expected, write_key(id, expected));
  }

  uint32_t flags(uint32_t id, uint32_t version) const { return maker_.flags(id, version); }

  void write_value(uint32_t id, uint32_t version, char* out) const {
    maker_.write_value(id, version & 0xffff, value_size(id), out);
  }

  // Whether flags and value are those of one version of this key.
  bool value_is(uint32_t id, uint32_t flags, std::string_view value) const {
    uint32_t version = 0;
    return value.size() == value_size(id) && maker_.version_of(id, flags, &version) &&
           maker_.value_is(id, version, value.data(), static_cast<uint32_t>(value.size()));
  }

 private:
  bench::ItemSizes sizes_of(uint32_t id) const {
    if (trace_ != nullptr) return {0, trace_->value_size(id)};
    if (sizes_.are_fixed()) return sizes_.of(seed_, id);
    return kept_.empty() ? sizes_.of(seed_, id % count_) : kept_[id % count_];
  }

  uint64_t seed_;
  bench::ItemMaker maker_;
  bench::Sizes sizes_;
  std::vector<bench::ItemSizes> kept_;  // a cache, for distributions that are costly to compute
  const bench::Trace* trace_ = nullptr;
  uint32_t fixed_key_size_ = 0;  // 0: keys have several sizes, or are a trace's
  uint32_t count_;
  uint32_t value_size_max_ = 0;
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_KEYSPACE_H_
