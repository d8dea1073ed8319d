// SPDX-License-Identifier: Apache-2.0
// SIMD efficiency over many passes: the mean of the passes' efficiencies (dissertation, equation
// 3.1) and the ratio of sums, which is what a profiler's counters give.
#ifndef WARPCACHE_SIM_SIMT_ESTIMATE_H_
#define WARPCACHE_SIM_SIMT_ESTIMATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simt/analysis.h"
#include "simt/model.h"
#include "simt/warp.h"

namespace warpcache::simt {

enum class Reconvergence { kPostDominators, kMachineCode };

// Of a mean over passes. Half widths of intervals are at a confidence of 95%, by the normal
// distribution.
struct Estimate {
  uint64_t passes = 0;
  double mean_of_ratios = 0;
  double mean_half_width = 0;
  double ratio_of_sums = 0;
  double ratio_half_width = 0;
};

// Sums over passes; the parts of a run are added in the order of their passes.
class Accumulator {
 public:
  explicit Accumulator(uint32_t warp_size) : warp_size_(warp_size) {}
  void add_pass(uint64_t instructions, uint64_t thread_instructions);
  void add(const Accumulator& other);
  Estimate estimate() const;

 private:
  uint32_t warp_size_;
  uint64_t passes_ = 0;
  double ratio_ = 0, ratio_squared_ = 0;
  double issued_ = 0, issued_squared_ = 0;
  double used_ = 0, used_squared_ = 0;
  double product_ = 0;
};

struct Result {
  Estimate estimate;
  std::vector<Estimate> convergence;  // after 10, 20, 50, 100, ... passes, and the last
  Tally tally{0};
  uint32_t warp_size = 0;
};

struct RunOptions {
  uint32_t function = 0;
  uint32_t warp_size = 32;
  uint64_t passes = 100'000;
  double half_width = 0;  // stops earlier, once both intervals are as narrow; 0: does not
  uint64_t seed = 1;
  uint32_t threads = 1;
  uint64_t steps_max = 10'000'000;  // blocks in one pass
  Reconvergence reconvergence = Reconvergence::kPostDominators;
  PostDominatorOptions post_dominators = {};
  // Removes edges that are never taken, so that lanes meet as early as the others allow.
  bool prune = false;
};

// Called periodically by the calling thread with the number of finished passes.
using Progress = std::function<void(uint64_t done)>;

// The machine that `options` ask for; `taken` says which edges stay with `prune`.
std::unique_ptr<Warp> make_warp(const Graph& graph, const RunOptions& options,
                                const EdgeSet& taken);

// False: `why` says that a pass had no end. The result is the same for every number of threads.
bool run_passes(const Graph& graph, const Loops& loops, const Model& model,
                const RunOptions& options, const Progress& progress, Result* out, std::string* why);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_ESTIMATE_H_
