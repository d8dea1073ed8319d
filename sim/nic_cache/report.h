// SPDX-License-Identifier: Apache-2.0
//
// Results as JSON lines and as tables.
#pragma once

#include <string>
#include <vector>

#include "nic_cache/options.h"
#include "nic_cache/packed_trace.h"
#include "nic_cache/replay.h"

namespace warpcache::nic {

// `source`: options.source with the seed of this run.
std::string run_line(const Options& options, const Source& source, const PackedTrace& trace,
                     const Setting& setting, const Result& result);
std::string trace_line(const Options& options, const PackedTrace& trace);
std::string model_line(const Options& options, double miss_rate, double get_share);

// The results of a setting, of one seed after the other.
struct SettingResults {
  Setting setting;
  std::vector<Result> results;
};

// A line a setting: what differs between the settings, and the GETs that miss, as a mean over the
// seeds and from the least to the most.
std::string run_table(const Options& options, const PackedTrace& trace,
                      const std::vector<SettingResults>& all);
std::string trace_table(const PackedTrace& trace);
std::string model_table(const Options& options);

}  // namespace warpcache::nic
