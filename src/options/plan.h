// SPDX-License-Identifier: Apache-2.0
//
// What a server would do with a trace of requests, for several sizes of its memory (--plan). The
// simulator hash-sim replays the trace on the server's own store; it is a program of its own, which
// this one starts, so that the server depends on nothing that only simulates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options/options.h"

namespace warpcache {

// A size of the memory. The ratios are of 1; over all requests of the trace, from an empty server
// on.
struct PlanRow {
  uint64_t memory_bytes = 0;  // as -m
  uint64_t used_bytes = 0;    // of it, in the end
  uint64_t items = 0;         // stored in the end
  uint64_t item_bytes = 0;    // keys and values of these
  uint64_t evictions = 0;
  double hit_ratio = 0;       // of gets
  double byte_hit_ratio = 0;  // of the keys and values that gets ask for
};

struct Plan {
  uint64_t requests = 0;
  uint64_t gets = 0;
  uint64_t keys = 0;       // that the trace names
  uint64_t key_bytes = 0;  // keys and values, each counted once
  std::vector<PlanRow> rows;
  bool fits = false;  // the last row evicts nothing
};

// The sizes to try: a quarter of -m to eight times of it, as far as the machine has the memory.
[[nodiscard]] std::vector<uint64_t> plan_sizes(uint64_t memory_bytes, uint64_t machine_bytes);

// The path of hash-sim: beside this program, else in PATH. "": there is none.
[[nodiscard]] std::string find_simulator();

// Reads one line of hash-sim's JSON. False: it is something else.
[[nodiscard]] bool read_plan_line(const std::string& line, Plan* plan);

// Replays options.process.plan. Ends after the first size that evicts nothing. Returns an error
// as one sentence, or "". `simulator`: as find_simulator().
[[nodiscard]] std::string make_plan(const Options& options, const std::string& simulator,
                                    Plan* plan);

// Lines for a terminal.
[[nodiscard]] std::string plan_text(const Plan& plan, const std::string& trace);

}  // namespace warpcache
