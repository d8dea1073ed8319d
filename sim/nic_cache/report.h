// SPDX-License-Identifier: Apache-2.0
// Results as JSON lines.
#pragma once

#include <string>

#include "nic_cache/options.h"

namespace warpcache::nic {

// One setting's figures: what was set, what was counted, and what follows from it.
std::string run_line(const Options& options, const PackedTrace& trace, const Setting& setting,
                     const Result& result);

// How a workload asks for its keys (figures 4 to 6).
std::string trace_line(const Options& options, const PackedTrace& trace);

// Equation 1 and figure 13 for one miss rate and one share of GETs.
std::string model_line(const Options& options, double miss_rate, double get_share);

}  // namespace warpcache::nic
