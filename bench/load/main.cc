// SPDX-License-Identifier: Apache-2.0
// warpcache-load: a load generator for memcached servers. docs/load.md explains it.
#include <fmt/core.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "load/options.h"
#include "load/report.h"
#include "load/run.h"

namespace warpcache::load {
namespace {

// The keys and their order, as the options say.
struct Workload {
  bench::Sizes sizes;
  Distribution distribution;
  bench::Trace trace;
  std::unique_ptr<Keyspace> keys;
};

bool prepare(Options* options, Workload* out, std::string* why) {
  if (!bench::Sizes::parse(options->sizes, &out->sizes, why) ||
      !Distribution::parse(options->distribution, &out->distribution, why)) {
    return false;
  }
  if (!out->distribution.is_trace()) {
    out->keys = std::make_unique<Keyspace>(options->seed, out->sizes, options->keys);
    out->distribution.prepare(options->keys, nullptr);
    return true;
  }
  const std::string& path = out->distribution.trace_path();
  std::ifstream in(path);
  std::string what = "it cannot be opened";
  if (!in || !bench::Trace::read(&in, out->sizes.of(options->seed, 0).value, &out->trace, &what)) {
    *why = path + ": " + what;
    return false;
  }
  if (out->trace.entries().size() < options->threads) {
    *why = path + ": it has fewer requests than there are threads";
    return false;
  }
  options->keys = out->trace.keys();
  out->keys = std::make_unique<Keyspace>(options->seed, out->trace);
  out->distribution.prepare(options->keys, &out->trace);
  return true;
}

bool write_json(const Options& options, const Summary& summary) {
  const std::string text = json(options, summary);
  if (options.json_path == "-") {
    fmt::print("{}", text);
    return true;
  }
  std::ofstream out(options.json_path);
  out << text;
  out.close();
  if (!out) fmt::print(stderr, "warpcache-load: cannot write {}\n", options.json_path);
  return static_cast<bool>(out);
}

int run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  Options options;
  const ParseResult parsed = parse_options(argc, argv, &options);
  if (parsed == ParseResult::kShown) return kExitDone;
  if (parsed == ParseResult::kRefused) return kExitUsage;
  Workload workload;
  std::string why;
  if (!prepare(&options, &workload, &why)) {
    fmt::print(stderr, "warpcache-load: {}\n", why);
    return kExitUsage;
  }
  const auto progress = [&](const Interval& interval) {
    if (!options.quiet) fmt::print(stderr, "{}", progress_line(interval));
  };
  Summary summary;
  Run load(options, *workload.keys, &workload.distribution);
  const RunStatus status = load.execute(progress, &summary, &why);
  if (status == RunStatus::kNoServer) {
    fmt::print(stderr, "warpcache-load: {}: {}\n", options.server, why);
    return kExitServer;
  }
  const bool began = summary.seconds > 0;
  if (began && (options.json_path != "-" || !options.quiet)) {
    fmt::print("{}", table(options, summary));
  }
  if (began && !options.json_path.empty() && !write_json(options, summary)) return kExitUsage;
  if (status == RunStatus::kLostServer) {
    fmt::print(stderr, "warpcache-load: {}: {}\n", options.server, why);
    return kExitServer;
  }
  return summary.wrong + summary.refused > 0 ? kExitWrong : kExitDone;
}

}  // namespace
}  // namespace warpcache::load

int main(int argc, char** argv) { return warpcache::load::run(argc, argv); }
