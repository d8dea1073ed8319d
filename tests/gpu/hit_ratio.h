// SPDX-License-Identifier: Apache-2.0
//
// The hit ratio of a cache that is smaller than its working set: GETs with skewed keys, and a SET
// after each miss, in large batches. Every engine gets the same sequence, except for its misses.
#pragma once

#include <cstdint>

#include "engine/engine.h"

namespace warpcache::gpu_tests {

struct HitRatioConfig {
  uint64_t memory_bytes = uint64_t{64} << 20;  // of the engine's store
  uint32_t working_set = 4;                    // times the memory
  double zipf = 0.99;
  uint64_t gets = 4'000'000;
  uint64_t warm_up = 2'000'000;  // of all requests, not counted
  uint32_t batch = 4096;         // requests
  uint32_t connections = 256;    // in a batch
  uint64_t seed = 1;
};

struct HitRatio {
  uint64_t gets = 0;  // after the warm-up, like the hits
  uint64_t hits = 0;
  uint64_t sets = 0;
  uint64_t refused = 0;  // sets that were refused
  uint64_t wrong = 0;  // answers that are neither a miss nor the right value, nor a reply to a set

  double percent() const {
    return gets == 0 ? 0 : 100 * static_cast<double>(hits) / static_cast<double>(gets);
  }
};

// Takes the engine's input memory.
HitRatio measure_hit_ratio(engine::Engine& engine, const HitRatioConfig& config);

}  // namespace warpcache::gpu_tests
