// SPDX-License-Identifier: Apache-2.0
// hash-sim: hit rates of hash tables and evictions (dissertation 4.3.2).
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "hitrate/options.h"
#include "hitrate/run.h"
#include "traces/exit_status.h"

namespace warpcache::sim {
namespace {

// Of a trace's requests.
struct TraceFacts {
  uint64_t requests = 0;
  uint64_t keys = 0;
  uint64_t footprint = 0;  // bytes of keys and values
};

nlohmann::json to_json(const Options& options, const TraceFacts& facts, const Result& result) {
  const Workload& workload = options.workload;
  nlohmann::json row = {{"simulator", "hash-sim"}, {"cache", result.run.cache}};
  row[result.run.size.costs.bytes ? "memory" : "capacity"] = result.run.size.capacity;
  if (result.run.size.costs.bytes) {
    row["overhead"] = result.run.size.costs.overhead;
    row["sizes"] = workload.sizes;
    row["byte_miss_ratio"] = result.counts.byte_miss_ratio();
    for (size_t i = 0; i < options.shares.size(); ++i) {
      if (options.memories[i] == result.run.size.capacity) row["share"] = options.shares[i];
    }
  }
  if (!options.trace_path.empty()) {
    row["trace"] = options.trace_path;
    row["requests"] = facts.requests;
    row["trace_keys"] = facts.keys;
    row["footprint"] = facts.footprint;
  } else {
    row["keys"] = workload.keys;
    row["key_count"] = workload.key_count;
    row["requests"] = workload.requests;
    row["mix"] = options.mix;
    row["seed"] = workload.seed;
    row["load"] = options.load;
    if (workload.one_hits > 0) row["one_hits"] = workload.one_hits;
    if (workload.scans > 0) {
      row["scans"] = workload.scans;
      row["scan_length"] = workload.scan_length;
    }
    if (workload.loops > 0) {
      row["loops"] = workload.loops;
      row["loop_length"] = workload.loop_length;
      row["loop_count"] = workload.loop_count;
    }
  }
  if (options.simulate.warm_up > 0) row["warm_up"] = options.simulate.warm_up;
  if (options.simulate.ttl_s > 0) {
    row["ttl_s"] = options.simulate.ttl_s;
    row["ttl_every"] = options.simulate.ttl_every;
    row["rate"] = options.simulate.requests_per_s;
  }
  row["gets"] = result.counts.gets;
  row["misses"] = result.counts.gets - result.counts.hits;
  row["miss_ratio"] = result.counts.miss_ratio();
  row["wrong"] = result.counts.wrong;
  row["items"] = result.items;
  if (result.moved > 0) row["moved"] = result.moved;
  if (result.used_bytes > 0) {
    row["item_bytes"] = result.item_bytes;
    row["used"] = result.used_bytes;
    row["evictions"] = result.evictions;
  }
  row["seconds"] = result.seconds;
  return row;
}

class Printer {
 public:
  Printer(const Options& options, const Source& source) : options_(options) {
    if (options.trace_path.empty() || options.json_path.empty()) return;
    facts_ = {source.trace()->length(), source.keys(), source.footprint(0)};
  }

  bool open() {
    if (options_.json_path.empty() || options_.json_path == "-") return true;
    file_.open(options_.json_path, std::ios::app);
    return static_cast<bool>(file_);
  }

  void print(const Result& result) {
    if (!options_.json_path.empty()) {
      (file_.is_open() ? file_ : std::cout)
          << to_json(options_, facts_, result).dump() << std::endl;
    }
    if (options_.quiet || options_.json_path == "-") return;
    fmt::print("{:28} {:>12}  hit rate {:8.4f}%  miss rate {:8.4f}%  items {:>10}  {:.1f} s\n",
               result.run.cache, result.run.size.capacity,
               100.0 * (1.0 - result.counts.miss_ratio()), 100.0 * result.counts.miss_ratio(),
               result.items, result.seconds);
    std::fflush(stdout);
  }

  void progress(uint64_t done, uint64_t all) const {
    if (options_.quiet) return;
    constexpr double kMillion = 1e6;
    fmt::print(stderr, "\r{:.1f} of {:.1f} million requests", static_cast<double>(done) / kMillion,
               static_cast<double>(all) / kMillion);
    if (done >= all) fmt::print(stderr, "\n");
  }

 private:
  const Options& options_;
  TraceFacts facts_;
  std::ofstream file_;
};

// Load and requests as time,key,size, which other simulators read. Gets and sets are both accesses;
// deletes cannot be said.
bool write_trace(const Options& options, const Source& source) {
  std::ofstream out(options.write_trace_path);
  out << "time,key,size\n";
  uint64_t time = 0;
  std::array<Request, 1024> requests;
  const auto write = [&](Trace* trace) {
    while (const size_t now = trace->read(requests.data(), requests.size())) {
      for (size_t i = 0; i < now; ++i) {
        if (requests[i].operation == Operation::kDelete) continue;
        out << time++ << ',' << requests[i].key << ',' << requests[i].value_size << '\n';
      }
    }
  };
  if (const std::unique_ptr<Trace> load = source.load_trace()) write(load.get());
  write(source.trace().get());
  out.close();
  return static_cast<bool>(out);
}

int fail(const std::string& why, int status = kExitUsage) {
  fmt::print(stderr, "hash-sim: {}\n", why);
  return status;
}

int run(int argc, char** argv) {
  int status = 0;
  std::optional<Options> options = parse_options(argc, argv, &status);
  if (!options) return status;
  std::string why;
  Source source;
  if (!source.open(*options, &why)) return fail(why);
  for (const double share : options->shares) {
    const auto footprint = static_cast<double>(source.footprint(options->overhead));
    options->memories.push_back(static_cast<uint64_t>(share * footprint));
  }
  if (options->capacities.empty() && options->memories.empty()) {
    options->capacities.push_back(std::max<uint64_t>(source.keys() * 4 / 5, 1));
  }
  if (!options->write_trace_path.empty()) {
    return write_trace(*options, source) ? kExitDone
                                         : fail("cannot write " + options->write_trace_path);
  }
  Printer printer(*options, source);
  if (!printer.open()) return fail("cannot write " + options->json_path);
  uint64_t wrong = 0;
  const auto done = [&](const Result& result) {
    printer.print(result);
    wrong += result.counts.wrong;
  };
  const auto progress = [&](uint64_t now, uint64_t all) { printer.progress(now, all); };
  if (options->exact_lru) {
    for (const Result& result : run_exact_lru(*options, source)) done(result);
  }
  if (!run_all(*options, source, progress, done, &why)) return fail(why);
  if (wrong == 0) return kExitDone;
  return fail(std::to_string(wrong) + " hits with a wrong value", kExitWrong);
}

}  // namespace
}  // namespace warpcache::sim

int main(int argc, char** argv) { return warpcache::sim::run(argc, argv); }
