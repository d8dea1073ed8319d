// SPDX-License-Identifier: Apache-2.0
// Results as tables and as JSON.
#ifndef WARPCACHE_SIM_SIMT_REPORT_H_
#define WARPCACHE_SIM_SIMT_REPORT_H_

#include <string>

#include "simt/analysis.h"
#include "simt/estimate.h"
#include "simt/exact.h"
#include "simt/graph.h"

namespace warpcache::simt {

// `expectation` may be null.
std::string table(const Result& result, const Expectation* expectation);

// One line. The histogram is the share of the warp's instructions by the lanes that executed them,
// from 1 lane on (dissertation, figure 3.10).
std::string json_line(const Result& result, const Expectation* expectation);

// Blocks by the share of the warp's instructions that they take.
std::string block_table(const Graph& graph, const Result& result);

// A description of the graph that was read.
std::string description(const Graph& graph, const Loops& loops,
                        const std::vector<uint32_t>& post_dominators);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_REPORT_H_
