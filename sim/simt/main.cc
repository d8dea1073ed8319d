// SPDX-License-Identifier: Apache-2.0
// cfg-sim: SIMD efficiency from a control-flow graph. docs/simulators/cfg-sim.md explains it.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "simt/counters.h"
#include "simt/options.h"
#include "simt/read_graph.h"
#include "simt/report.h"
#include "simt/rounds.h"
#include "simt/trace.h"
#include "simt/unmix.h"
#include "traces/exit_status.h"

namespace warpcache::simt {
namespace {

using sim::kExitDone;
constexpr int kExitNoResult = sim::kExitWrong;
constexpr int kExitInput = sim::kExitUsage;
constexpr uint64_t kWarpsDrawn = 1000;

int refuse(const std::string& what, const std::string& why, int status = kExitInput) {
  fmt::print(stderr, "cfg-sim: {}: {}\n", what, why);
  return status;
}

bool read_file(const std::string& path, std::string* out, std::string* why) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  *out = text.str();
  if (!in) *why = "it cannot be read";
  return static_cast<bool>(in);
}

bool write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return true;
  }
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) fmt::print(stderr, "cfg-sim: {}: it cannot be written\n", path);
  return static_cast<bool>(out);
}

// What every command begins with.
struct Input {
  Graph graph;
  Loops loops;
  Model model;
};

int load_graph(Options* options, Input* out) {
  std::string text;
  std::string why;
  if (!read_file(options->graph_path, &text, &why) || !read_graph(text, &out->graph, &why)) {
    return refuse(options->graph_path, why);
  }
  if (!options->instructions_path.empty() && (!read_file(options->instructions_path, &text, &why) ||
                                              !read_instructions(text, &out->graph, &why))) {
    return refuse(options->instructions_path, why);
  }
  if (!options->function.empty()) {
    options->run.function = out->graph.find_function(options->function);
    if (options->run.function == kNone) {
      return refuse(options->function, "no function, or several, of that name");
    }
  }
  out->loops = find_loops(out->graph);
  return kExitDone;
}

int load_model(const Options& options, Input* out) {
  std::string text;
  std::string why;
  out->model = equal_model(out->graph);
  if (!options.model_path.empty() &&
      (!read_file(options.model_path, &text, &why) ||
       !read_model(text, out->graph, out->loops, &out->model, &why))) {
    return refuse(options.model_path, why);
  }
  if (!options.weights.empty() && !reweight(options.weights, &out->model, &why)) {
    return refuse("--weights", why);
  }
  const EdgeSet taken = edges_taken(out->graph, out->model, out->loops);
  if (options.assume == "equal") out->model = equal_model(out->graph);
  if (options.assume == "augmented") out->model = augmented_model(out->graph, taken);
  return kExitDone;
}

int load_traces(const Options& options, const Graph& graph, Traces* out) {
  std::ifstream in(options.traces_path);
  std::string why = "it cannot be read";
  if (!in || !read_traces(in, graph, options.run.function, out, &why)) {
    return refuse(options.traces_path, why);
  }
  if (options.weights.empty()) return kExitDone;
  std::vector<double> weights;
  const Traces recorded = std::move(*out);
  const uint64_t warps = options.warps == 0 ? kWarpsDrawn : options.warps;
  const Draw draw = {warps * options.run.warp_size, options.run.warp_size, options.run.seed,
                     options.class_rho};
  if (!parse_weights(options.weights, recorded.classes, &weights, &why) ||
      !draw_threads(recorded, weights, draw, out, &why)) {
    return refuse("--weights", why);
  }
  return kExitDone;
}

int report(const Options& options, const Graph& graph, const Result& result,
           const Expectation* expectation) {
  if (!options.quiet && options.json_path != "-") fmt::print("{}", table(result, expectation));
  if (options.per_block) fmt::print("{}", block_table(graph, result));
  if (options.json_path.empty()) return kExitDone;
  return write_file(options.json_path, json_line(result, expectation)) ? kExitDone : kExitInput;
}

int run(const Options& options, const Input& input) {
  std::string why;
  Result result;
  const auto progress = [&](uint64_t done) {
    if (options.quiet || done % 10'000 != 0) return;
    fmt::print(stderr, "\r{} of {} passes", done, options.run.passes);
    if (done == options.run.passes) fmt::print(stderr, "\n");
  };
  if (!run_passes(input.graph, input.loops, input.model, options.run, progress, &result, &why)) {
    return refuse(options.graph_path, why, kExitNoResult);
  }
  if (!options.exact) return report(options, input.graph, result, nullptr);
  const EdgeSet taken =
      options.run.prune ? edges_taken(input.graph, input.model, input.loops) : EdgeSet{};
  const auto meets = immediate_post_dominators(input.graph, taken, options.run.post_dominators);
  Expectation expectation;
  if (!expect(input.graph, meets, input.model, options.run.function, options.run.warp_size,
              &expectation, &why)) {
    return refuse("--exact", why, kExitNoResult);
  }
  return report(options, input.graph, result, &expectation);
}

int run_replay(const Options& options, const Input& input) {
  Traces traces;
  if (const int status = load_traces(options, input.graph, &traces); status != 0) return status;
  const EdgeSet taken = options.run.prune ? edges_taken(input.graph, traces) : EdgeSet{};
  Result result;
  std::string why;
  if (!replay(input.graph, traces, options.run, taken, nullptr, &result, &why)) {
    return refuse(options.traces_path, why, kExitNoResult);
  }
  return report(options, input.graph, result, nullptr);
}

int run_profile(const Options& options, const Input& input) {
  Traces traces;
  if (const int status = load_traces(options, input.graph, &traces); status != 0) return status;
  if (options.mix_classes) {
    traces.classes = {"all"};
    for (ThreadTrace& thread : traces.threads) thread.thread_class = 0;
  }
  std::string json;
  std::string why;
  if (!profile_of(input.graph, input.loops, traces, options.run,
                  {options.traces_path, options.plain}, &json, &why)) {
    return refuse(options.traces_path, why, kExitNoResult);
  }
  return write_file(options.output_path, json) ? kExitDone : kExitInput;
}

int run_counters(const Options& options, const Input& input) {
  std::string text;
  std::string why;
  CounterProfile profile;
  if (!read_file(options.counters_path, &text, &why) ||
      !profile_of_counters(text, input.graph, options.run.function, &profile, &why)) {
    return refuse(options.counters_path, why);
  }
  fmt::print("measured efficiency, ratio of sums: {:.4f}\n", profile.measured_ratio_of_sums);
  return write_file(options.output_path, profile.json) ? kExitDone : kExitInput;
}

// "FIRST<mark>REST"
bool split(const std::string& text, char mark, std::string* first, std::string* rest) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return false;
  *first = text.substr(0, at);
  *rest = text.substr(at + 1);
  return true;
}

int learn_mixtures(Options& options, std::string* json) {
  Input input;
  if (options.graph_path.empty()) return refuse("--mixture", "it needs --graph");
  if (const int status = load_graph(&options, &input); status != 0) return status;
  for (const std::string& text : options.mixtures) {
    Mixture mixture;
    std::string path;
    std::string shares;
    std::string why = "expected FILE:CLASS=SHARE,...";
    if (!split(text, ':', &path, &shares) || !parse_numbers(shares, &mixture.shares) ||
        !read_file(path, &mixture.profile, &why) ||
        !learn_from_mixture(input.graph, options.run.function, mixture, json, &why)) {
      return refuse(text, why);
    }
  }
  return kExitDone;
}

int mark_rounds(const std::string& text, std::string* json) {
  std::string capacity_text;
  std::string sizes_text;
  double capacity = 0;
  std::vector<std::pair<std::string, double>> sizes;
  std::string why = "expected CAPACITY:CLASS=SIZE,...";
  const bool fits = split(text, ':', &capacity_text, &sizes_text) &&
                    parse_number(capacity_text, &capacity) && capacity > 0 &&
                    parse_numbers(sizes_text, &sizes);
  if (!fits || !simt::mark_rounds(capacity, sizes, json, &why)) return refuse("--rounds", why);
  return kExitDone;
}

int run_merge(Options& options) {
  std::vector<std::pair<std::string, std::string>> profiles;
  std::vector<std::pair<std::string, std::string>> likes;
  std::string json;
  std::string why;
  for (const std::string& one : options.profiles) {
    std::string name;
    std::string path;
    std::string text;
    if (!split(one, '=', &name, &path)) return refuse(one, "expected CLASS=FILE");
    if (!read_file(path, &text, &why)) return refuse(one, why);
    profiles.emplace_back(name, text);
  }
  for (const std::string& one : options.likes) {
    likes.emplace_back();
    if (!split(one, '=', &likes.back().first, &likes.back().second)) {
      return refuse(one, "expected CLASS=CLASS");
    }
  }
  if (!merge_profiles(profiles, &json, &why)) return refuse("merge", why);
  if (!options.rounds.empty()) {
    if (const int status = mark_rounds(options.rounds, &json); status != 0) return status;
  }
  if (!options.mixtures.empty()) {
    if (const int status = learn_mixtures(options, &json); status != 0) return status;
  }
  if (!liken(likes, &json, &why)) return refuse("--like", why);
  return write_file(options.output_path, json) ? kExitDone : kExitInput;
}

int execute(Options& options) {
  if (options.command == Command::kMerge) return run_merge(options);
  Input input;
  if (const int status = load_graph(&options, &input); status != 0) return status;
  if (options.command == Command::kShow) {
    const auto meets = immediate_post_dominators(input.graph, {}, options.run.post_dominators);
    return write_file("-", description(input.graph, input.loops, meets)) ? kExitDone : kExitInput;
  }
  if (options.command == Command::kReplay) return run_replay(options, input);
  if (options.command == Command::kProfile) return run_profile(options, input);
  if (options.command == Command::kCounters) return run_counters(options, input);
  if (const int status = load_model(options, &input); status != 0) return status;
  return run(options, input);
}

}  // namespace
}  // namespace warpcache::simt

int main(int argc, char** argv) {
  warpcache::simt::Options options;
  switch (warpcache::simt::parse_options(argc, argv, &options)) {
    case warpcache::simt::ParseResult::kShown:
      return 0;
    case warpcache::simt::ParseResult::kRefused:
      return 2;
    case warpcache::simt::ParseResult::kGo:
      break;
  }
  return warpcache::simt::execute(options);
}
