// SPDX-License-Identifier: Apache-2.0
// A branch profile from a profiler's counters per instruction: the source page of Nsight Compute as
// CSV, and the efficiency that the same counters show.
#ifndef WARPCACHE_SIM_SIMT_COUNTERS_H_
#define WARPCACHE_SIM_SIMT_COUNTERS_H_

#include <string>
#include <string_view>

#include "simt/graph.h"

namespace warpcache::simt {

struct CounterProfile {
  std::string json;  // as read_model() reads it
  double measured_ratio_of_sums = 0;
};

// Takes the columns Address, Instructions Executed, Thread Instructions Executed and Predicated-On
// Thread Instructions Executed. Addresses count from the first row's, where the section of the
// kernel `function` begins; the graph must have been written with nvdisasm -poff. Of a branch the
// threads whose predicate held have taken it; a jump table's targets are weighed by their own
// executions. Where the column Divergent Branches is there, a branch's rho follows from how many of
// its warps have parted. False: `why` says what does not fit.
bool profile_of_counters(std::string_view csv, const Graph& graph, uint32_t function,
                         CounterProfile* out, std::string* why);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_COUNTERS_H_
