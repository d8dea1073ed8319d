// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nic_cache/model.h"
#include "nic_cache/sweep.h"

namespace warpcache::nic {

enum class Command : uint8_t {
  kRun,    // replay workloads through caches
  kTrace,  // what the workloads are like
  kModel,  // throughput and latency of given hit rates
};

struct Options {
  Command command = Command::kRun;
  std::vector<std::string> workloads{"a"};
  Source source;
  Lists lists;
  Latencies latencies;
  Throughputs throughputs;
  uint32_t threads = 0;   // 0: as many as there are CPUs
  uint32_t seeds = 1;     // runs of each setting, with source.seed and those after it
  std::string json_path;  // appended to; -: standard output instead of tables
  bool quiet = false;
  uint64_t first_requests = 5000;                            // of kTrace
  uint32_t cdf_points = 200;                                 // of kTrace
  std::string write_trace_path;                              // of kTrace
  std::vector<double> miss_rates{0, 0.2, 0.4, 0.6, 0.8, 1};  // of kModel
  std::vector<double> get_shares{0, 0.25, 0.5, 0.75, 0.95, 1};
};

enum class ParseResult : uint8_t { kRun, kShown, kRefused };

// Reads the command line. Prints help on request (kShown), or an error (kRefused).
ParseResult parse_options(int argc, char** argv, Options* out);

}  // namespace warpcache::nic
