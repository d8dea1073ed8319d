// SPDX-License-Identifier: Apache-2.0
//
// One measurement: fill the store, run the requests through a backend several times, verify the
// replies of the last time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "offline/backend.h"
#include "offline/workload.h"

namespace warpcache::offline {

// How the requests of a batch stand: as they are drawn, or those that do the same side by side.
enum class Order : uint8_t { kDrawn, kCommand, kKeySize };

struct StudyConfig {
  WorkloadConfig workload;
  uint64_t requests = 1'000'000;
  std::vector<uint32_t> batches = {4096};  // requests at a time, one row each
  uint32_t passes = 3;                     // the best counts
  bool verify = true;
  Order order = Order::kDrawn;
  double requests_per_s = 0;  // see Pass
  // What shares the card, a row for each with each size of batches. launches 0: nothing.
  std::vector<BackgroundConfig> backgrounds = {{}};
};

// Of the pass that took least time.
struct Row {
  uint32_t batch = 0;
  double requests_per_s = 0;
  double mean_us = 0;  // of batches
  double p50_us = 0;
  double p95_us = 0;
  double p99_us = 0;
  double max_us = 0;
  double in_gb_per_s = 0;  // slots of frames, 10^9 bytes
  double out_gb_per_s = 0;
  // Of all passes but the first, and what is between them, the card alone. 0: not known, or too
  // short a time.
  double requests_per_j = 0;
  double watts = 0;
  BackgroundConfig background;
  double background_ms = 0;        // a run of it beside the requests
  double background_alone_ms = 0;  // and before them
  uint64_t verified = 0;
  uint64_t wrong = 0;
  std::string first_wrong;
};

struct StudyResult {
  std::vector<Row> rows;
  BusLimits bus;  // measured before
};

// Says what is being done, now and then: "verifying 40%".
using Progress = std::function<void(const std::string& text)>;

// Stores all keys, through the backend, as sets of it. What a full store has evicted again is
// missed later and counts as wrong: the store has to be large enough. Throws as run_study().
void fill(const Workload& workload, Backend& backend, const Progress& progress);

// Throws std::runtime_error if something does not work at all, std::bad_alloc without memory.
StudyResult run_study(const StudyConfig& config, Backend& backend, const Progress& progress);

}  // namespace warpcache::offline
