// SPDX-License-Identifier: Apache-2.0
#include "load/keyspace.h"

#include <algorithm>

namespace warpcache::load {

Keyspace::Keyspace(uint64_t seed, const bench::Sizes& sizes, uint32_t count)
    : seed_(seed), maker_(seed), sizes_(sizes), count_(count) {
  if (sizes.are_fixed()) fixed_key_size_ = sizes.of(seed, 0).key;
  if (!sizes.costly()) {
    value_size_max_ = sizes.value_max();
    return;
  }
  kept_.reserve(count);
  for (uint32_t id = 0; id < count; ++id) {
    kept_.push_back(sizes.of(seed, id));
    value_size_max_ = std::max(value_size_max_, kept_.back().value);
  }
}

Keyspace::Keyspace(uint64_t seed, const bench::Trace& trace)
    : seed_(seed), maker_(seed), trace_(&trace), count_(trace.keys()) {
  for (uint32_t id = 0; id < count_; ++id) {
    value_size_max_ = std::max(value_size_max_, trace.value_size(id));
  }
}

}  // namespace warpcache::load
