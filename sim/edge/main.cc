// SPDX-License-Identifier: Apache-2.0
// edge-sim: warps that serve interrupts, cycle by cycle. docs/simulators/edge-sim.md explains it.
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>

#include "edge/lanes.h"
#include "edge/options.h"
#include "edge/recording.h"
#include "edge/report.h"
#include "simt/read_graph.h"
#include "traces/exit_status.h"

namespace warpcache::edge_sim {
namespace {

using Clock = std::chrono::steady_clock;

class Program {
 public:
  explicit Program(const Options& options) : options_(options) {}

  int run() {
    if (!options_.json_path.empty() && options_.json_path != "-") {
      json_.open(options_.json_path, std::ios::app);
      if (!json_) return refuse("cannot write " + options_.json_path);
    }
    if (options_.command == Command::kKernels) return list();
    return options_.command == Command::kLanes ? lanes() : simulate();
  }

 private:
  int refuse(const std::string& why) {
    fmt::print(stderr, "edge-sim: {}\n", why);
    return sim::kExitUsage;
  }

  int list() const {
    for (const CaseName& one : case_names()) fmt::print("{:10} {}\n", one.name, one.what);
    return sim::kExitDone;
  }

  bool tables() const { return options_.json_path != "-"; }
  void add_line(const std::string& line) {
    if (options_.json_path.empty()) return;
    if (tables()) {
      json_ << line << std::flush;
    } else {
      fmt::print("{}", line);
      std::fflush(stdout);
    }
  }

  bool record(const std::string& kernel, double scale, uint32_t warp_size, bool paths,
              KernelTrace* out) {
    RecordOptions how;
    how.warp_size = warp_size;
    how.paths = paths;
    CaseOptions cases = options_.cases;
    cases.scale = scale;
    if (kernel != "own") return record_case(kernel, cases, how, out, &differs_, &why_);
    Case one;
    own_kernels_.clear();
    if (!make_own_case(options_.own, cases.seed, &own_kernels_, &one, &why_)) return false;
    Regions regions;
    for (const Buffer& buffer : one.buffers) regions.add(buffer.data, buffer.bytes);
    return edge_sim::record(own_kernels_.at(one.kernel), one.launch, regions, how, out, &why_);
  }

  int give_up() {
    const int status = refuse(why_);
    return differs_ ? sim::kExitWrong : status;
  }

  int simulate() {
    std::vector<Setting> settings;
    if (!combinations(options_, &settings, &why_)) return refuse(why_);
    KernelTrace event;
    if (!options_.event.empty() && !record(options_.event, options_.event_scale, 32, false, &event))
      return give_up();
    std::vector<Outcome> outcomes;
    KernelTrace trace;
    for (size_t i = 0; i < settings.size(); ++i) {
      Setting& setting = settings[i];
      if (i == 0 || settings[i - 1].kernel != setting.kernel ||
          settings[i - 1].warp_size != setting.warp_size) {
        trace = KernelTrace{};
        trace.name = setting.kernel;
        if (setting.kernel != "none" &&
            !record(setting.kernel, options_.cases.scale, setting.warp_size, false, &trace))
          return give_up();
      }
      if (!options_.event.empty()) setting.run.interrupts.event = &event;
      const auto progress = [&](Cycle now, uint64_t blocks) {
        if (options_.quiet || Clock::now() < next_) return;
        next_ = Clock::now() + std::chrono::seconds(2);
        fmt::print(stderr, "kernel {}: setting {} of {}, cycle {}, {} blocks\n", setting.kernel,
                   i + 1, settings.size(), now, blocks);
      };
      RunResult result;
      if (!edge_sim::run(trace.kernel == nullptr ? nullptr : &trace, setting.run, progress, &result,
                         &why_)) {
        refuse(why_);
        return result.cycles > 0 ? sim::kExitWrong : sim::kExitUsage;
      }
      add_line(run_line(options_, setting, trace, result));
      outcomes.push_back({setting, result});
    }
    if (tables()) fmt::print("{}", run_table(outcomes));
    return sim::kExitDone;
  }

  int lanes() {
    std::vector<std::pair<std::string, Lanes>> all;
    const std::vector<std::string> own = {"own"};
    for (const std::string& kernel : options_.own.path.empty() ? options_.lists.kernels : own) {
      KernelTrace trace;
      Lanes measured;
      if (!record(kernel, options_.cases.scale, options_.lists.warp_sizes.front(), true, &trace))
        return give_up();
      if (!measure_lanes(trace, options_.passes, options_.cases.seed, &measured, &why_))
        return refuse(why_);
      if (!write_graph(trace)) return refuse("cannot write the graph or the traces");
      add_line(lanes_line(options_, kernel, measured));
      all.emplace_back(kernel, measured);
    }
    if (tables()) fmt::print("{}", lanes_table(all));
    return sim::kExitDone;
  }

  bool write_graph(const KernelTrace& trace) const {
    if (!options_.graph_path.empty()) {
      std::ofstream out(options_.graph_path);
      out << simt::to_dot(trace.kernel->graph);
      if (!out) return false;
    }
    if (options_.traces_path.empty()) return true;
    std::ofstream out(options_.traces_path);
    for (const std::vector<uint32_t>& path : trace.paths) {
      out << "thread";
      for (const uint32_t block : path) out << ' ' << trace.kernel->graph.blocks[block].name;
      out << '\n';
    }
    return static_cast<bool>(out);
  }

  const Options& options_;
  std::ofstream json_;
  std::string why_;
  bool differs_ = false;
  std::map<std::string, Kernel> own_kernels_;
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(2);
};

}  // namespace
}  // namespace warpcache::edge_sim

int main(int argc, char** argv) {
  using warpcache::edge_sim::ParseResult;
  warpcache::edge_sim::Options options;
  const ParseResult parsed = warpcache::edge_sim::parse_options(argc, argv, &options);
  if (parsed == ParseResult::kShown) return warpcache::sim::kExitDone;
  if (parsed == ParseResult::kRefused) return warpcache::sim::kExitUsage;
  return warpcache::edge_sim::Program(options).run();
}
