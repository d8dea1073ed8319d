// SPDX-License-Identifier: Apache-2.0
//
// The long form of the concurrency tests: scenarios for as long, or as many operations, as asked.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "stress/scenario.h"

int main(int argc, char** argv) {
  using namespace warpcache::stress;
  Effort effort;
  effort.seconds = 60;
  std::vector<std::string> names;
  uint32_t threads = 0;
  CLI::App app("Runs random commands on few keys from many threads and checks every reply.");
  app.add_option("--scenario", names, "which ones; default: all");
  app.add_option("--seconds", effort.seconds, "of each scenario, at most");
  app.add_option("--operations", effort.operations, "of each scenario, at most");
  app.add_option("--seed", effort.seed, "of all that is random");
  app.add_option("--threads", threads, "at once");
  CLI11_PARSE(app, argc, argv);
  const std::vector<Scenario> scenarios = all_scenarios();
  if (names.empty()) {
    for (const Scenario& scenario : scenarios) names.push_back(scenario.name);
  }
  bool failed = false;
  uint64_t operations = 0;
  for (const std::string& name : names) {
    const Scenario* found = find_scenario(scenarios, name);
    if (found == nullptr) {
      std::fprintf(stderr, "no scenario %s\n", name.c_str());
      return 2;
    }
    Scenario scenario = *found;
    if (threads != 0) scenario.threads = threads;
    const Report report = run_scenario(scenario, effort);
    std::printf("%s", describe(scenario, report).c_str());
    for (const std::string& failure : report.failures) std::printf("FAILED: %s\n", failure.c_str());
    std::fflush(stdout);
    failed |= !report.failures.empty();
    operations += report.operations;
  }
  std::printf("%llu operations checked, %s\n", static_cast<unsigned long long>(operations),
              failed ? "FAILED" : "all in order");
  return failed ? 1 : 0;
}
