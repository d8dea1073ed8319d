// SPDX-License-Identifier: Apache-2.0
// Results as JSON lines and as tables.
#pragma once

#include <string>
#include <vector>

#include "edge/lanes.h"
#include "edge/options.h"

namespace warpcache::edge_sim {

struct Outcome {
  Setting setting;
  RunResult result;
};

std::string run_line(const Options& options, const Setting& setting, const KernelTrace& trace,
                     const RunResult& result);
std::string run_table(const std::vector<Outcome>& outcomes);
std::string lanes_line(const Options& options, const std::string& kernel, const Lanes& lanes);
std::string lanes_table(const std::vector<std::pair<std::string, Lanes>>& all);

}  // namespace warpcache::edge_sim
