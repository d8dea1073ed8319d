// SPDX-License-Identifier: Apache-2.0
#include "stress/scenario.h"

#include <fmt/format.h>

namespace warpcache::stress {

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

Scenario calm() {
  Scenario scenario;
  scenario.name = "calm";
  scenario.filler_commands = 0;
  return scenario;
}

// The index grows from its smallest size while the keys are checked.
Scenario growth() {
  Scenario scenario;
  scenario.name = "growth";
  scenario.memory = 64 * kMiB;
  scenario.filler_commands = 48;
  scenario.filler_keys = 200'000;
  scenario.filler_value_max = 24;
  scenario.filler_set_percent = 90;
  return scenario;
}

// More keys than fit: seldom read ones are evicted.
Scenario pressure() {
  Scenario scenario;
  scenario.name = "pressure";
  scenario.memory = 2 * kMiB;
  scenario.keys = 600;
  scenario.batches = 250;
  scenario.filler_commands = 64;
  scenario.filler_value_max = 1200;
  scenario.filler_set_percent = 80;
  return scenario;
}

// The same with maintenance done by the keeper: no batch waits for a maintenance thread.
Scenario kept_pressure() {
  Scenario scenario = pressure();
  scenario.name = "kept-pressure";
  scenario.maintenance_thread = false;
  scenario.memory = 4 * kMiB;
  return scenario;
}

Scenario keep_all() {
  Scenario scenario;
  scenario.name = "keep-all";
  scenario.memory = 4 * kMiB;
  scenario.keep_all = true;
  scenario.filler_commands = 24;
  scenario.filler_keys = 4000;
  scenario.filler_value_max = 500;
  return scenario;
}

Scenario expiry() {
  Scenario scenario;
  scenario.name = "expiry";
  scenario.memory = 8 * kMiB;
  scenario.expiry = true;
  scenario.flush_every = 2000;
  scenario.tick_ms = 4;
  return scenario;
}

// Times to live and flush_all with little free memory: items move and none is evicted, so a GPU can
// be checked.
Scenario kept_expiry() {
  Scenario scenario = keep_all();
  scenario.name = "kept-expiry";
  scenario.memory = 3 * kMiB;
  scenario.expiry = true;
  scenario.flush_every = 4000;
  scenario.tick_ms = 60;
  return scenario;
}

Scenario large() {
  Scenario scenario;
  scenario.name = "large";
  scenario.memory = 32 * kMiB;
  scenario.large_values = true;
  scenario.value_max = 200'000;
  scenario.pins_held = 3;
  scenario.filler_value_max = 4000;
  return scenario;
}

Scenario exhausted_pins() {
  Scenario scenario = large();
  scenario.name = "exhausted-pins";
  scenario.memory = 8 * kMiB;
  scenario.exhaust_pins = true;
  scenario.pins_held = 16;
  return scenario;
}

Scenario faults() {
  Scenario scenario;
  scenario.name = "faults";
  scenario.memory = 8 * kMiB;
  scenario.fail_every = 5;
  scenario.change_limit = true;
  scenario.filler_value_max = 1000;
  return scenario;
}

Scenario everything() {
  Scenario scenario;
  scenario.name = "everything";
  scenario.memory = 6 * kMiB;
  scenario.keys = 150;
  scenario.batches = 150;
  scenario.expiry = true;
  scenario.flush_every = 5000;
  scenario.tick_ms = 5;
  scenario.large_values = true;
  scenario.value_max = 150'000;
  scenario.pins_held = 4;
  scenario.exhaust_pins = true;
  scenario.fail_every = 50;
  scenario.change_limit = true;
  scenario.filler_commands = 32;
  scenario.filler_set_percent = 80;
  return scenario;
}

}  // namespace

std::vector<Scenario> all_scenarios() {
  return {calm(),        growth(), pressure(),       kept_pressure(), keep_all(),  expiry(),
          kept_expiry(), large(),  exhausted_pins(), faults(),        everything()};
}

const Scenario* find_scenario(const std::vector<Scenario>& scenarios, std::string_view name) {
  for (const Scenario& scenario : scenarios) {
    if (scenario.name == name) return &scenario;
  }
  return nullptr;
}

std::string describe(const Scenario& scenario, const Report& report) {
  return fmt::format(
      "{}: {} operations checked and {} others in {:.1f} s, {} rounds; {} hits, {} misses, {} "
      "without memory; {} evictions of checked keys, {} in all; {} items moved, {} expired, {} "
      "splits, {} pins held; {:.2f} states an operation\n",
      scenario.name, report.operations, report.filler, report.seconds, report.rounds, report.hits,
      report.misses, report.no_memory, report.evictions, report.all_evictions, report.moved,
      report.expired, report.splits, report.pins,
      static_cast<double>(report.steps) /
          static_cast<double>(std::max<uint64_t>(report.operations, 1)));
}

}  // namespace warpcache::stress
