// SPDX-License-Identifier: Apache-2.0
// Runs requests over a cache as an application in front of a database would: a get that misses is
// followed by a set (dissertation 4.3.2).
#ifndef WARPCACHE_SIM_HITRATE_SIMULATE_H_
#define WARPCACHE_SIM_HITRATE_SIMULATE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "hitrate/cache.h"
#include "traces/trace.h"

namespace warpcache::sim {

struct Counts {
  uint64_t gets = 0;
  uint64_t hits = 0;
  uint64_t get_bytes = 0;  // keys and values
  uint64_t hit_bytes = 0;
  uint64_t sets = 0;  // those of the trace
  uint64_t deletes = 0;
  uint64_t wrong = 0;  // hits with another value than was set last: a bug of the cache

  double miss_ratio() const { return missing(hits, gets); }
  double byte_miss_ratio() const { return missing(hit_bytes, get_bytes); }

 private:
  static double missing(uint64_t hit, uint64_t all) {
    return all > 0 ? static_cast<double>(all - hit) / static_cast<double>(all) : 0.0;
  }
};

// Called after every batch of requests with the number of requests done.
using Progress = std::function<void(uint64_t)>;

struct SimulateOptions {
  uint64_t hash_seed = 1;
  uint64_t warm_up = 0;  // requests that are not counted
  // Time to live of every `ttl_every`-th key, by its number; 0: nothing expires.
  uint32_t ttl_s = 0;
  uint32_t ttl_every = 1;
  uint64_t requests_per_s = 0;  // moves the time; 0: it stands
  // For each request, see Cache::announce(); empty: nothing is announced.
  std::vector<uint64_t> next_uses;
  Progress progress;  // may be empty
};

Counts simulate(Trace* trace, Cache* cache, const SimulateOptions& options);

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_SIMULATE_H_
