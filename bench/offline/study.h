// SPDX-License-Identifier: Apache-2.0
//
// One measurement: fills the store, runs the requests through a backend several times, and verifies
// the replies of the last pass.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "offline/backend.h"
#include "offline/workload.h"

namespace warpcache::offline {

// The order of the requests in a batch: as drawn, or similar ones side by side.
enum class Order : uint8_t { kDrawn, kCommand, kKeySize };

struct StudyConfig {
  WorkloadConfig workload;
  uint64_t requests = 1'000'000;
  std::vector<uint32_t> batches = {4096};  // requests in a batch, one row each
  uint32_t passes = 3;                     // the best counts
  bool verify = true;
  Order order = Order::kDrawn;
  double requests_per_s = 0;  // see Pass
  // Background work on the GPU: a row for each, with each size of batches. launches 0: none.
  std::vector<BackgroundConfig> backgrounds = {{}};
};

// Of the fastest pass.
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
  // Energy of the GPU alone, over all passes but the first with the pauses between them. 0: not
  // known, or the time was too short.
  double requests_per_j = 0;
  double watts = 0;
  BackgroundConfig background;
  double background_ms = 0;        // a run beside the requests
  double background_alone_ms = 0;  // a run without them
  uint64_t verified = 0;
  uint64_t wrong = 0;
  std::string first_wrong;
};

struct StudyResult {
  std::vector<Row> rows;
  BusLimits bus;  // measured before the requests
};

// Reports now and then what is being done: "verifying 40%".
using Progress = std::function<void(const std::string& text)>;

// Stores all keys with sets through the backend. A key that a full store evicts is missed later and
// counts as wrong: the store has to be large enough. Throws like run_study().
void fill(const Workload& workload, Backend& backend, const Progress& progress);

// Throws std::runtime_error if something fails, std::bad_alloc without memory.
StudyResult run_study(const StudyConfig& config, Backend& backend, const Progress& progress);

}  // namespace warpcache::offline
