// SPDX-License-Identifier: Apache-2.0
// Runs the experiments of a command line: every cache with every size.
#ifndef WARPCACHE_SIM_HITRATE_RUN_H_
#define WARPCACHE_SIM_HITRATE_RUN_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hitrate/make_cache.h"
#include "hitrate/options.h"
#include "traces/file_trace.h"

namespace warpcache::sim {

struct Run {
  std::string cache;
  CacheSize size;
};

struct Result {
  Run run;
  Counts counts;
  uint64_t items = 0;  // stored in the end
  uint64_t moved = 0;  // see Cache
  uint64_t item_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t evictions = 0;
  double seconds = 0;  // that it took
};

// The source of the requests: the options' workload or file. Shared by threads; immutable after
// open().
class Source {
 public:
  // False, and *why, if the file cannot be read, the workload cannot be, or the warm-up takes it
  // all.
  bool open(const Options& options, std::string* why);

  // Null: there is no loading.
  std::unique_ptr<Trace> load_trace() const;
  std::unique_ptr<Trace> trace() const;

  // In the beginning, or in the file.
  uint64_t keys() const;

  // The bytes of all that is asked for or set, with `overhead` for each item.
  uint64_t footprint(uint32_t overhead) const;

  // For each request, the number of the next one of its key; kNever: none.
  std::vector<uint64_t> next_uses() const;

 private:
  std::unique_ptr<Trace> make_requests(std::string* why) const;

  Workload workload_;
  static constexpr uint32_t kValueSizeDefault = 100;  // bytes, of keys that a file gives none

  bool load_ = false;
  std::unique_ptr<bench::Trace> file_;
};

std::vector<Run> runs_of(const Options& options);

// Done so far of all, over all runs.
using TotalProgress = std::function<void(uint64_t done, uint64_t all)>;

// Runs all experiments on options.threads threads and reports their results in the order of
// runs_of(), one at a time, each as soon as it and those before it are there. False, and *why, if a
// cache cannot be made.
bool run_all(const Options& options, const Source& source, const TotalProgress& progress,
             const std::function<void(const Result&)>& done, std::string* why);

// The exact LRU miss ratios of options.capacities.
std::vector<Result> run_exact_lru(const Options& options, const Source& source);

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_RUN_H_
