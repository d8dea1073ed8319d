// SPDX-License-Identifier: Apache-2.0
// A generated workload: what its requests are, and the traces that it consists of.
#ifndef WARPCACHE_SIM_TRACES_WORKLOAD_H_
#define WARPCACHE_SIM_TRACES_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "traces/trace.h"

namespace warpcache::sim {

// Shares of the requests; the others are gets.
struct Mix {
  double sets = 0;     // of keys drawn like those of gets
  double inserts = 0;  // sets of new keys: number `keys` and on
  double deletes = 0;

  // Reads a YCSB workload's letter (a: half sets; b: 5% sets; c: gets alone; d: 5% inserts) or
  // "GETS:SETS" or "GETS:SETS:INSERTS:DELETES" in any unit. False, and *why, if `text` is neither.
  static bool parse(const std::string& text, Mix* out, std::string* why);
};

struct Workload {
  std::string keys = "ycsb-scrambled";  // see make_keys()
  uint64_t key_count = 10'000'000;      // when it begins
  uint64_t requests = 10'000'000;
  Mix mix;
  double one_hits = 0;       // share of the requests
  double scans = 0;          // likewise
  uint64_t scan_length = 0;  // keys
  double loops = 0;          // share of the requests
  uint64_t loop_length = 0;  // keys
  uint64_t loop_count = 1;
  std::string sizes = "fixed:16:32";  // see bench::Sizes
  uint64_t seed = 1;
};

// The requests. Null, and *why, if something in `workload` cannot be.
std::unique_ptr<Trace> make_trace(const Workload& workload, std::string* why);

// Before them: a set of each key, in the order of their numbers, as YCSB's load phase does.
std::unique_ptr<Trace> make_load_trace(const Workload& workload, std::string* why);

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_TRACES_WORKLOAD_H_
