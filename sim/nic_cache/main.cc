// SPDX-License-Identifier: Apache-2.0
// nic-cache-sim: a cache at the network interface. docs/simulators/nic-cache-sim.md explains it.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "nic_cache/options.h"
#include "nic_cache/report.h"
#include "traces/exit_status.h"

namespace warpcache::nic {
namespace {

using Clock = std::chrono::steady_clock;

int refuse(const std::string& why) {
  fmt::print(stderr, "nic-cache-sim: {}\n", why);
  return sim::kExitUsage;
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

// Standard output and the file of --json.
class Output {
 public:
  explicit Output(const std::string& json_path)
      : tables_(json_path != "-"), json_(!json_path.empty()) {
    if (json_ && tables_) file_.open(json_path, std::ios::app);
    failed_ = json_ && tables_ && !file_;
  }

  bool failed() const { return failed_; }
  bool tables() const { return tables_; }
  void add_line(const std::string& line) {
    if (!json_) return;
    if (tables_) {
      file_ << line << std::flush;
    } else {
      fmt::print("{}", line);
    }
  }
  void add_table(const std::string& table) {
    if (tables_) fmt::print("{}", table);
    std::fflush(stdout);
  }

 private:
  bool tables_;
  bool json_;
  bool failed_ = false;
  std::ofstream file_;
};

// False, and *why, if the settings are not sound. Sets *stale if a safe one answered wrong.
bool run_workload(const Options& options, const std::string& workload, Output* output, bool* stale,
                  std::string* why) {
  std::vector<SettingResults> all;
  std::unique_ptr<PackedTrace> trace;
  for (uint32_t i = 0; i < options.seeds; ++i) {
    Source source = options.source;
    source.seed += i;
    trace = make_packed_trace(source, workload, why);
    if (trace == nullptr) return false;
    const std::vector<Setting> settings = combinations(options.lists, *trace, why);
    if (settings.empty()) return false;
    Progress progress(*trace, settings.size(), options.quiet);
    const std::vector<Result> results =
        run_all(*trace, settings, options.threads, [&](size_t done) { progress.show(done); });
    all.resize(settings.size());
    for (size_t s = 0; s < settings.size(); ++s) {
      output->add_line(run_line(options, source, *trace, settings[s], results[s]));
      all[s].setting = settings[s];
      all[s].results.push_back(results[s]);
      const bool may_be_stale = settings[s].policies.allocate == ReadAllocate::kUnsafe;
      if (results[s].stale > 0 && !may_be_stale) *stale = true;
    }
  }
  output->add_table(run_table(options, *trace, all));
  return true;
}

// The requests after the load phase, in the columns of the cache traces that Twitter published.
bool write_requests(const PackedTrace& trace, const std::string& path) {
  std::ofstream file(path);
  for (uint64_t at = trace.load_steps(); at < trace.steps(); ++at) {
    const Step step = trace.step(at);
    const std::string key = fmt::format("k{}", step.key);
    const auto key_size = static_cast<uint32_t>(key.size());
    const uint32_t value = std::max(trace.bytes(step.key), key_size) - key_size;
    const char* const operation = step.operation == sim::Operation::kGet   ? "get"
                                  : step.operation == sim::Operation::kSet ? "set"
                                                                           : "delete";
    file << fmt::format("{},{},{},{},0,{},0\n", at, key, key.size(), value, operation);
  }
  file.close();
  return !file.fail();
}

bool show_trace(const Options& options, const std::string& workload, Output* output,
                std::string* why) {
  const std::unique_ptr<PackedTrace> trace = make_packed_trace(options.source, workload, why);
  if (trace == nullptr) return false;
  if (!options.write_trace_path.empty() && !write_requests(*trace, options.write_trace_path)) {
    *why = "cannot write " + options.write_trace_path;
    return false;
  }
  output->add_line(trace_line(options, *trace));
  if (output->tables()) output->add_table(trace_table(*trace));
  return true;
}

int run_workloads(const Options& options, Output* output) {
  bool stale = false;
  for (const std::string& workload : options.workloads) {
    std::string why;
    if (!options.write_trace_path.empty() && options.workloads.size() > 1) {
      return refuse("--write-trace writes the requests of one workload");
    }
    const bool well = options.command == Command::kTrace
                          ? show_trace(options, workload, output, &why)
                          : run_workload(options, workload, output, &stale, &why);
    if (!well) return refuse(why);
  }
  if (stale) fmt::print(stderr, "nic-cache-sim: a GET was answered with an old value\n");
  return stale ? sim::kExitWrong : sim::kExitDone;
}

void print_model(const Options& options, Output* output) {
  for (const double miss_rate : options.miss_rates) {
    for (const double get_share : options.get_shares) {
      output->add_line(model_line(options, miss_rate, get_share));
    }
  }
  output->add_table(model_table(options));
}

int run(int argc, char** argv) {
  Options options;
  const ParseResult parsed = parse_options(argc, argv, &options);
  if (parsed == ParseResult::kShown) return sim::kExitDone;
  if (parsed == ParseResult::kRefused) return sim::kExitUsage;
  Output output(options.json_path);
  if (output.failed()) return refuse("cannot write " + options.json_path);
  if (options.command != Command::kModel) return run_workloads(options, &output);
  print_model(options, &output);
  return sim::kExitDone;
}

}  // namespace
}  // namespace warpcache::nic

int main(int argc, char** argv) { return warpcache::nic::run(argc, argv); }
