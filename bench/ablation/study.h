// SPDX-License-Identifier: Apache-2.0
//
// Fills a store, measures every variant on it, and verifies all answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ablation/kernels.h"
#include "offline/study.h"

namespace warpcache::ablation {

struct StudyConfig {
  offline::WorkloadConfig workload;
  uint64_t requests = uint64_t{1} << 22;  // rounded up to whole batches
  uint32_t batch = 65536;                 // requests of a launch
  uint32_t passes = 5;                    // over all requests; the best counts
  // Load factors of the hopscotch tables, one row each: items divided by homes; lower where that is
  // too full. 0: as many homes as the sets have slots.
  std::vector<double> hopscotch_loads = {0, 0.75};
  uint32_t gpu = 0;
};

struct Row {
  std::string experiment;
  std::string variant;
  Footprint footprint;
  double requests_per_s = 0;
  double batch_us = 0;  // on average, with launches one after the other
  double load = 0;      // of an index; 0: not measured in this row, and so on
  double sectors = 0;   // of 32 bytes: read by a look-up in index and item
  uint64_t verified = 0;
  uint64_t wrong = 0;
};

struct StudyResult {
  std::string device;
  uint32_t request_slot_bytes = 0;
  uint32_t reply_slot_bytes = 0;
  uint64_t requests = 0;
  std::vector<Row> rows;
};

// Throws std::runtime_error if something fails, std::bad_alloc without memory.
StudyResult run_study(const StudyConfig& config, const offline::Progress& progress);

}  // namespace warpcache::ablation
