// SPDX-License-Identifier: Apache-2.0
// Results as JSON lines.
#pragma once

#include <string>

#include "nic_cache/options.h"

namespace warpcache::nic {

// The results of a setting: its parameters, its counts and the derived values.
std::string run_line(const Options& options, const PackedTrace& trace, const Setting& setting,
                     const Result& result);

// The access pattern of a workload (figures 4 to 6).
std::string trace_line(const Options& options, const PackedTrace& trace);

// Equation 1 and figure 13 for one miss rate and one share of GETs.
std::string model_line(const Options& options, double miss_rate, double get_share);

}  // namespace warpcache::nic
