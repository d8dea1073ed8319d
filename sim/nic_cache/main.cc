// SPDX-License-Identifier: Apache-2.0
// nic-cache-sim: a cache at the network interface. docs/simulators/nic-cache-sim.md explains it.
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "nic_cache/options.h"
#include "nic_cache/report.h"

namespace warpcache::nic {
namespace {

using Clock = std::chrono::steady_clock;

int refuse(const std::string& why) {
  fmt::print(stderr, "nic-cache-sim: {}\n", why);
  return kExitUsage;
}

// Lines on standard error while settings are done, two seconds apart at least.
class Progress {
 public:
  Progress(const PackedTrace& trace, size_t settings, bool quiet)
      : trace_(trace), settings_(settings), quiet_(quiet) {}

  void show(size_t done) {
    const bool early = Clock::now() < next_ && done != settings_;
    if (quiet_ || early) return;
    next_ = Clock::now() + kInterval;
    const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    const double rate = static_cast<double>(done * trace_.steps()) / seconds / 1e6;
    fmt::print(stderr, "workload {}: {} of {} settings, {:.0f} s, {:.1f} M requests/s\n",
               trace_.name(), done, settings_, seconds, rate);
  }

 private:
  static constexpr std::chrono::seconds kInterval{2};

  const PackedTrace& trace_;
  size_t settings_;
  bool quiet_;
  Clock::time_point begun_ = Clock::now();
  Clock::time_point next_ = begun_ + kInterval;
};

// False, and *why, if the settings are not sound. Sets *stale if a safe one answered wrong.
bool run_workload(const Options& options, const PackedTrace& trace, bool* stale, std::string* why) {
  const std::vector<Setting> settings = combinations(options.lists, trace, why);
  if (settings.empty()) return false;
  Progress progress(trace, settings.size(), options.quiet);
  const std::vector<Result> results =
      run_all(trace, settings, options.threads, [&](size_t done) { progress.show(done); });
  for (size_t i = 0; i < settings.size(); ++i) {
    fmt::print("{}", run_line(options, trace, settings[i], results[i]));
    const bool may_be_stale = settings[i].policies.allocate == ReadAllocate::kUnsafe;
    if (results[i].stale > 0 && !may_be_stale) *stale = true;
  }
  return true;
}

int run_workloads(const Options& options) {
  bool stale = false;
  for (const std::string& workload : options.workloads) {
    std::string why;
    const std::unique_ptr<PackedTrace> trace = make_packed_trace(options.source, workload, &why);
    if (trace == nullptr) return refuse(why);
    if (options.command == Command::kTrace) {
      fmt::print("{}", trace_line(options, *trace));
    } else if (!run_workload(options, *trace, &stale, &why)) {
      return refuse(why);
    }
    std::fflush(stdout);
  }
  if (stale) fmt::print(stderr, "nic-cache-sim: a GET was answered with an old value\n");
  return stale ? kExitStale : kExitDone;
}

void print_model(const Options& options) {
  for (const double miss_rate : options.miss_rates) {
    for (const double get_share : options.get_shares) {
      fmt::print("{}", model_line(options, miss_rate, get_share));
    }
  }
}

int run(int argc, char** argv) {
  Options options;
  const ParseResult parsed = parse_options(argc, argv, &options);
  if (parsed == ParseResult::kShown) return kExitDone;
  if (parsed == ParseResult::kRefused) return kExitUsage;
  if (options.command != Command::kModel) return run_workloads(options);
  print_model(options);
  return kExitDone;
}

}  // namespace
}  // namespace warpcache::nic

int main(int argc, char** argv) { return warpcache::nic::run(argc, argv); }
