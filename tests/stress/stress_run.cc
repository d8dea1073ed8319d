// SPDX-License-Identifier: Apache-2.0
//
// The long form of the concurrency tests: runs scenarios for a given time or number of operations.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "stress/scenario.h"
#include "stress/wire_run.h"
#if defined(WARPCACHE_HAVE_BPF)
#include "stress/nic_front.h"
#endif

namespace {

using namespace warpcache::stress;

// Returns true if all pass.
bool run_all(const std::vector<Scenario>& scenarios, const Effort& effort,
             const std::vector<Address>& addresses) {
  bool failed = false;
  uint64_t operations = 0;
  for (const Scenario& scenario : scenarios) {
    const Report report = addresses.empty() ? run_scenario(scenario, effort)
                                            : run_over_wire(scenario, effort, addresses);
    std::printf("%s", describe(scenario, report).c_str());
    for (const std::string& failure : report.failures) std::printf("FAILED: %s\n", failure.c_str());
    std::fflush(stdout);
    failed |= !report.failures.empty();
    operations += report.operations;
  }
  std::printf("%llu operations checked, %s\n", static_cast<unsigned long long>(operations),
              failed ? "FAILED" : "all in order");
  return !failed;
}

}  // namespace

int main(int argc, char** argv) {
  Effort effort;
  effort.seconds = 60;
  std::vector<std::string> names;
  std::vector<std::string> servers;
  std::vector<std::string> udp_servers;
  uint32_t plain_gets = 0;
  uint32_t threads = 0;
  std::string engine = "cpu";
  CLI::App app("Runs random commands on few keys from many threads and checks every reply.");
  app.add_option("--scenario", names, "which ones; default: all");
  app.add_option("--seconds", effort.seconds, "of each scenario, at most");
  app.add_option("--operations", effort.operations, "of each scenario, at most");
  app.add_option("--seed", effort.seed, "of all that is random");
  app.add_option("--threads", threads, "at once");
  app.add_option("--engine", engine, "cpu, cuda, cuda-persistent, cuda-host-values or cuda-edge")
      ->check(CLI::IsMember({"cpu", "cuda", "cuda-persistent", "cuda-host-values", "cuda-edge"}));
#if defined(WARPCACHE_HAVE_BPF)
  bool nic_cache = false;
  app.add_flag("--nic-cache", nic_cache, "reads also go to the NIC cache's program");
  bool write_back = false;
  app.add_flag("--nic-cache-write-back", write_back, "and it accepts sets");
#endif
  app.add_option("--server", servers,
                 "HOST:PORT of a server that runs; several: ways to one store. Scenarios without "
                 "evictions and times to live, default: calm and large");
  app.add_option("--udp-server", udp_servers, "likewise, by UDP; default: calm");
  app.add_option(
         "--plain-gets", plain_gets,
         "percent of commands that get one key; no meta commands and no decr then. For caches "
         "on the way")
      ->check(CLI::Range(1, 99));
  CLI11_PARSE(app, argc, argv);
  std::vector<Address> addresses(servers.size() + udp_servers.size());
  for (size_t i = 0; i < addresses.size(); ++i) {
    addresses[i].is_udp = i >= servers.size();
    const std::string& text = addresses[i].is_udp ? udp_servers[i - servers.size()] : servers[i];
    if (read_address(text, &addresses[i])) continue;
    std::fprintf(stderr, "stress_run: %s is not HOST:PORT\n", text.c_str());
    return 2;
  }
  if (!addresses.empty() && names.empty()) {
    names = {"calm"};
    if (udp_servers.empty()) names.push_back("large");
  }
#if defined(WARPCACHE_HAVE_BPF)
  nic_cache |= write_back;
  NicFront front(write_back);
  if (const std::string refused = nic_cache ? front.load() : ""; !refused.empty()) {
    std::fprintf(stderr, "stress_run: %s\n", refused.c_str());
    return 2;
  }
  if (nic_cache) effort.front = &front;
#endif
  (void)warpcache::engine::read_rig_kind(engine, &effort.engine);
  const std::vector<Scenario> known = all_scenarios();
  std::vector<Scenario> chosen = names.empty() ? known : std::vector<Scenario>{};
  for (const std::string& name : names) {
    const Scenario* found = find_scenario(known, name);
    if (found == nullptr) {
      std::fprintf(stderr, "no scenario %s\n", name.c_str());
      return 2;
    }
    if (!addresses.empty() && found->expiry) {
      std::fprintf(stderr, "stress_run: %s needs the server's clock\n", name.c_str());
      return 2;
    }
    if (!udp_servers.empty() && found->large_values) {
      std::fprintf(stderr, "stress_run: values of %s do not fit into datagrams\n", name.c_str());
      return 2;
    }
    chosen.push_back(*found);
  }
  for (Scenario& scenario : chosen) {
    if (threads != 0) scenario.threads = threads;
    scenario.plain_gets = plain_gets;
  }
  try {
    const bool passed = run_all(chosen, effort, addresses);
#if defined(WARPCACHE_HAVE_BPF)
    if (nic_cache) {
      std::printf("%llu reads answered by the NIC cache's program\n",
                  static_cast<unsigned long long>(front.answered()));
    }
#endif
    return passed ? 0 : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "stress_run: %s\n", failure.what());
    return 2;
  }
}
