// SPDX-License-Identifier: Apache-2.0
// Seeded random numbers: the same seed gives the same request stream on every machine.
#ifndef WARPCACHE_BENCH_WORKLOAD_RANDOM_H_
#define WARPCACHE_BENCH_WORKLOAD_RANDOM_H_

#include <cstdint>

namespace warpcache::bench {

// Mixes all bits of `x` (a bijection).
constexpr uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  x ^= x >> 32;
  return x;
}

// A seed for mix(mixed, ...), which many numbers share.
constexpr uint64_t mix_seed(uint64_t seed) { return mix(seed + 0x9e3779b97f4a7c15); }

// A well-mixed number for each (seed, a, b).
constexpr uint64_t mix(uint64_t seed, uint64_t a, uint64_t b) {
  return mix(mix(mix_seed(seed) + a) + b);
}

// Maps 64 random bits to (0, 1): never 0, never 1.
constexpr double unit(uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) * (1.0 / 4503599627370496.0);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed, 0, 0)) {}

  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15); }
  double next_unit() { return unit(next()); }

 private:
  uint64_t state_;
};

}  // namespace warpcache::bench

#endif  // WARPCACHE_BENCH_WORKLOAD_RANDOM_H_
