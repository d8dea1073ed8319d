// SPDX-License-Identifier: Apache-2.0
// Caches by their names.
#ifndef WARPCACHE_SIM_HITRATE_MAKE_CACHE_H_
#define WARPCACHE_SIM_HITRATE_MAKE_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "hitrate/cache.h"
#include "hitrate/costs.h"

namespace warpcache::sim {

struct CacheSize {
  uint64_t capacity = 0;  // entries; bytes with costs.bytes
  Costs costs;
};

// By `name`; null, and *why, if it is none of these, or cannot have this size:
//   chained[:POLICY]       every item competes; POLICY lru, fifo, clock, sieve, s3fifo,
//                          s3fifo-empty-main, s3fifo-few-ghosts, gdsf, gdsf-25, gdsf-50,
//                          gdsf-75, lirs, w-tinylfu, lhd, farthest
//   set:WAYS[:POLICY]      1 to 64 ways; also random, duel and two-generations
//   hopscotch, strided, cuckoo, cuckoo:4
//   two-generations[:YOUNG[:WASTE[:COUNTER_MAX[:COUNTER_MIN[:GHOSTS[:BY_SIZE]]]]]]   see Thresholds
//   store[:SEGMENT_KIB]    the server's own; bytes only
// Those that are limited by bytes are chained, two-generations and store.
std::unique_ptr<Cache> make_cache(const std::string& name, const CacheSize& size, uint64_t seed,
                                  std::string* why);

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_MAKE_CACHE_H_
