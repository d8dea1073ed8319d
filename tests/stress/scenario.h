// SPDX-License-Identifier: Apache-2.0
//
// The load of a run, and its result.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/testing/rig.h"
#include "stress/front.h"

namespace warpcache::stress {

inline constexpr uint32_t kItemSizeMax = 4 << 20;  // bytes

struct Scenario {
  std::string name;
  uint64_t memory = uint64_t{64} << 20;  // bytes
  bool keep_all = false;                 // -M
  bool maintenance_thread = true;        // of the store; else the run's keeper does its work
  uint32_t threads = 4;                  // each with an engine
  uint32_t sessions = 4;                 // connections of a thread
  uint32_t commands_max = 6;             // of a session in a batch
  uint32_t keys = 12;                    // whose histories are checked
  uint32_t batches = 60;                 // of a thread between two pauses
  // Percent of commands that read one key. If not 0, there are no meta commands, and no decr:
  // whether memcached pads a shorter number depends on who else holds the item.
  uint32_t plain_gets = 0;

  uint32_t filler_commands = 8;     // of a thread in a batch, on keys that are not checked
  uint32_t filler_keys = 20'000;    // of each thread
  uint32_t filler_value_max = 600;  // bytes
  uint32_t filler_set_percent = 50;

  bool expiry = false;        // items have times to live, and time passes
  uint32_t flush_every = 0;   // commands, on average; 0: never
  bool large_values = false;  // some keys have values up to value_max, received in pieces
  uint32_t value_max = 0;     // bytes, of large values
  uint32_t pins_held = 0;     // replies of a thread that stay unsent for a while
  bool exhaust_pins = false;  // take pins until the store refuses further ones
  uint32_t fail_every = 0;    // one allocation in this number fails, on average; 0: none
  bool change_limit = false;  // the memory limit moves between half and all of it
  uint32_t tick_ms = 20;      // length of a server second
};

// For GoogleTest, which shows parameters of tests.
inline void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

struct Effort {
  uint64_t operations = 0;  // stop after this number of checked ones; 0: no such limit
  double seconds = 2;       // stop after this time
  uint64_t seed = 1;
  // On a GPU evictions are not seen, so the eviction of a checked key is a failure of the run,
  // unless there is a front and the keeper does maintenance: then an item may have been evicted at
  // any time of a round, more than once. No allocations can be made to fail.
  engine::RigKind engine = engine::RigKind::kCpu;
  uint32_t gpu_blocks = engine::RigConfig{}.gpu_blocks;  // of each engine
  // Reads go to it too; null: none. One that writes is for the CPU engine.
  Front* front = nullptr;
  // Go on until the front has given this number of replies; for `front_rounds_max` rounds at most.
  uint64_t answered = 0;
  uint64_t front_rounds_max = 0;
};

struct Report {
  uint64_t operations = 0;  // checked
  uint64_t filler = 0;      // commands on other keys
  uint64_t hits = 0;        // reads of checked keys
  uint64_t misses = 0;
  uint64_t no_memory = 0;
  uint64_t evictions = 0;  // of checked keys
  uint64_t all_evictions = 0;
  uint64_t moved = 0;   // items, by maintenance
  uint64_t splits = 0;  // of the index
  uint64_t expired = 0;
  uint64_t pins = 0;   // replies that were held
  uint64_t steps = 0;  // states that the checker visited
  uint64_t rounds = 0;
  double seconds = 0;
  std::vector<std::string> failures;  // empty: the run passed
};

// The scenarios by their names.
std::vector<Scenario> all_scenarios();
const Scenario* find_scenario(const std::vector<Scenario>& scenarios, std::string_view name);

// Throws std::runtime_error if there is no such engine, or not for this scenario.
Report run_scenario(const Scenario& scenario, const Effort& effort);
std::string describe(const Scenario& scenario, const Report& report);

}  // namespace warpcache::stress
