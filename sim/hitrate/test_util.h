// SPDX-License-Identifier: Apache-2.0
// For tests: keys with chosen places, and caches by name.
#ifndef WARPCACHE_SIM_HITRATE_TEST_UTIL_H_
#define WARPCACHE_SIM_HITRATE_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "hitrate/make_cache.h"
#include "hitrate/simulate.h"
#include "traces/workload.h"

namespace warpcache::sim {

// A key whose place_of(hash, count) is `place`. The upper half of the hash is `upper`.
inline Key key_at(uint64_t id, uint32_t place, uint32_t count, uint32_t upper = 0) {
  const uint64_t lower = ((uint64_t{place} << 32) + count - 1) / count;
  return {id, uint64_t{upper} << 32 | lower};
}

inline std::unique_ptr<Cache> cache_of(const std::string& name, uint64_t capacity,
                                       const Costs& costs = {}) {
  std::string why;
  std::unique_ptr<Cache> cache = make_cache(name, {capacity, costs}, 1, &why);
  EXPECT_NE(cache, nullptr) << why;
  return cache;
}

inline void set(Cache* cache, const Key& key, uint32_t value = 1) { cache->set(key, {value}); }
inline bool holds(Cache* cache, const Key& key) { return cache->get(key, nullptr); }

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_TEST_UTIL_H_
