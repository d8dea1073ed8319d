// SPDX-License-Identifier: Apache-2.0
//
// What the programs share whose instructions bench/instructions/run counts.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/assert.h"
#include "store/host/store.h"

namespace warpcache::bench {

// A store that does the same in each run: for one thread, with a fixed seed, and without a clock or
// maintenance of its own.
inline std::unique_ptr<store::Store> make_store() {
  store::StoreConfig config;
  config.memory_limit = uint64_t{64} << 20;
  config.threads = 1;
  config.maintenance_thread = false;
  config.manual_clock = true;
  config.seed = 12345;
  std::unique_ptr<store::Store> store;
  WC_ASSERT(store::Store::create(config, &store) == Status::kOk);
  return store;
}

// The program: calls run(workload, iterations) for the one of `all` that is named, or lists them.
// `what`: what the program does; `unit`: what an iteration is. Returns the exit status.
template <typename Workload, typename Run>
int run_named(int argc, char** argv, const std::map<std::string, Workload>& all,
              uint32_t iterations, const char* what, const char* unit, const Run& run) {
  CLI::App app(what);
  std::string name;
  bool list = false;
  app.add_option("--workload", name, "which; see --list");
  app.add_option("--iterations", iterations, unit);
  app.add_flag("--list", list, "the workloads' names");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    for (const auto& [known, workload] : all) fmt::print("{}\n", known);
    return 0;
  }
  const auto found = all.find(name);
  if (found == all.end()) {
    fmt::print(stderr, "no workload is called '{}'; see --list\n", name);
    return 2;
  }
  run(found->second, iterations);
  return 0;
}

}  // namespace warpcache::bench
