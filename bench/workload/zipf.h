// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_WORKLOAD_ZIPF_H_
#define WARPCACHE_BENCH_WORKLOAD_ZIPF_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace warpcache::bench {

// Ranks 0 .. count-1, rank r with a probability proportional to 1 / (r + 1)^theta. Exact: it
// inverts the complete distribution function, which it keeps in memory (8 bytes a rank).
class Zipf {
 public:
  // REQUIRES: count > 0, theta >= 0 (0 is the uniform distribution).
  Zipf(uint32_t count, double theta);

  // The rank whose part of the unit interval contains `point`. REQUIRES: 0 <= point < 1.
  uint32_t rank_at(double point) const;

  double probability(uint32_t rank) const;

 private:
  std::vector<double> below_;    // below_[r]: the probability of all ranks < r; one more at the end
  std::vector<uint32_t> guide_;  // where to start the search, by the leading part of the point
};

}  // namespace warpcache::bench

#endif  // WARPCACHE_BENCH_WORKLOAD_ZIPF_H_
