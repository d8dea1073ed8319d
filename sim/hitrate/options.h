// SPDX-License-Identifier: Apache-2.0
// hash-sim's command line.
#ifndef WARPCACHE_SIM_HITRATE_OPTIONS_H_
#define WARPCACHE_SIM_HITRATE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hitrate/simulate.h"
#include "traces/workload.h"

namespace warpcache::sim {

struct Options {
  std::vector<std::string> caches = {"chained:lru", "set:16:lru"};
  std::vector<uint64_t> capacities;  // entries
  std::vector<uint64_t> memories;    // bytes; instead of capacities
  std::vector<double> shares;        // of the footprint; become memories
  uint32_t overhead = 48;            // bytes an item, with memories
  bool exact_lru = false;

  Workload workload;
  std::string mix = "b";
  bool load = true;
  std::string trace_path;
  std::string write_trace_path;

  SimulateOptions simulate;
  uint32_t threads = 1;
  std::string json_path;
  bool quiet = false;
};

// Null where the program is to end, with *status.
std::optional<Options> parse_options(int argc, char** argv, int* status);

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_OPTIONS_H_
