// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "simt/model.h"
#include "simt/trace.h"

namespace warpcache::simt {
namespace {

using Json = nlohmann::ordered_json;

// Below these a correlation is noise.
constexpr double kRhoMin = 0.02;
constexpr double kDisagreementsMin = 100;

// Threads, per successor.
using Ways = std::vector<uint64_t>;

struct Outcomes {
  Ways to;
  std::map<uint64_t, Ways> turns;  // in a loop: by turn_key()
};

// Thread by thread: who went where, and at which iteration of the loop.
class Counter {
 public:
  Counter(const Graph& graph, const Loops& loops, const Traces& traces)
      : graph_(graph), loops_(loops), counts_(graph.blocks.size()), turn_(loops.loops.size()) {
    for (uint32_t b = 0; b < counts_.size(); ++b) {
      counts_[b].resize(traces.classes.size());
      for (Outcomes& one : counts_[b]) one.to.resize(graph.blocks[b].successors.size());
    }
    for (const ThreadTrace& thread : traces.threads) count(thread);
  }

  const Outcomes& of(uint32_t block, size_t thread_class) const {
    return counts_[block][thread_class];
  }
  double share(uint32_t block, size_t thread_class, size_t way) const {
    const auto& to = counts_[block][thread_class].to;
    uint64_t sum = 0;
    for (const uint64_t one : to) sum += one;
    return sum == 0 ? 0 : static_cast<double>(to[way]) / static_cast<double>(sum);
  }
  bool is_in_loop(uint32_t block) const { return loops_.innermost[block] != kNone; }

 private:
  void count(const ThreadTrace& thread) {
    uint32_t from = kNone;
    for (size_t i = 0; i < thread.blocks.size(); ++i) {
      const uint32_t block = thread.blocks[i];
      const uint32_t loop = loops_.headed[block];
      if (loop != kNone) turn_[loop] = loops_.holds(loop, from) ? turn_[loop] + 1 : 1;
      from = block;
      if (graph_.blocks[block].successors.size() < 2) continue;
      const uint32_t to = i + 1 < thread.blocks.size() ? thread.blocks[i + 1] : kExit;
      count(counts_[block][thread.thread_class], block, to);
    }
  }

  void count(Outcomes& outcomes, uint32_t block, uint32_t to) {
    const auto& successors = graph_.blocks[block].successors;
    const auto found = std::find(successors.begin(), successors.end(), to);
    if (found == successors.end()) return;
    const auto way = static_cast<size_t>(found - successors.begin());
    ++outcomes.to[way];
    const uint32_t inner = loops_.innermost[block];
    if (inner == kNone) return;
    const uint32_t outer = loops_.loops[inner].parent;
    count(outcomes, turn_key(turn_[inner], 0), way);
    if (outer != kNone) count(outcomes, turn_key(turn_[inner], turn_[outer]), way);
  }

  static void count(Outcomes& outcomes, uint64_t key, size_t way) {
    Ways& ways = outcomes.turns[key];
    ways.resize(outcomes.to.size());
    ++ways[way];
  }

  const Graph& graph_;
  const Loops& loops_;
  std::vector<std::vector<Outcomes>> counts_;  // per block and class
  std::vector<uint32_t> turn_;                 // of the thread being counted, per loop
};

// Warp by warp: how often lanes that come to a branch together also leave together, and how often
// they would by chance.
class Togetherness final : public BranchObserver {
 public:
  Togetherness(const Graph& graph, const Counter& counter, size_t classes)
      : counter_(counter), classes_(classes), sites_(graph.blocks.size()) {
    for (uint32_t b = 0; b < sites_.size(); ++b) ways_.push_back(graph.blocks[b].successors.size());
  }

  void branch(uint32_t block, LaneMask lanes, const LaneMask* parts) override {
    Site& site = sites_[block];
    ++site.warps;
    const double all = std::popcount(lanes);
    uint32_t taken_ways = 0;
    for (size_t way = 0; way < ways_[block]; ++way) {
      const double part = std::popcount(parts[way]);
      taken_ways += part > 0;
      site.together += part * (part - 1);
      // Lanes of one class alone: with several the warp's mixture is not known here.
      const double p = counter_.share(block, 0, way);
      site.by_chance += all * (all - 1) * p * p;
    }
    site.divergent += taken_ways > 1;
    site.pairs += all * (all - 1);
  }

  uint64_t warps(uint32_t block) const { return sites_[block].warps; }
  uint64_t divergent(uint32_t block) const { return sites_[block].divergent; }

  // 0 where nothing speaks for more.
  double rho(uint32_t block) const {
    const Site& site = sites_[block];
    const double disagreements = site.pairs - site.by_chance;
    if (classes_ > 1 || counter_.is_in_loop(block) || disagreements < kDisagreementsMin) return 0;
    const double rho = (site.together - site.by_chance) / disagreements;
    return rho < kRhoMin ? 0 : std::min(rho, 1.0);
  }

 private:
  struct Site {
    uint64_t warps = 0;
    uint64_t divergent = 0;
    double pairs = 0;
    double together = 0;
    double by_chance = 0;
  };
  const Counter& counter_;
  size_t classes_;
  std::vector<Site> sites_;
  std::vector<size_t> ways_;
};

Json outcomes_json(const Graph& graph, uint32_t block, const Outcomes& outcomes) {
  Json json = Json::object();
  const auto& successors = graph.blocks[block].successors;
  for (size_t way = 0; way < successors.size(); ++way) {
    json["to"][successor_name(graph, successors[way])] = outcomes.to[way];
    json["ways"].push_back(successor_name(graph, successors[way]));
  }
  for (const auto& [key, ways] : outcomes.turns) {
    Json turn = {key & UINT32_MAX, key >> 32};
    for (const uint64_t count : ways) turn.push_back(count);
    json["turns"].push_back(turn);
  }
  const bool any =
      std::any_of(outcomes.to.begin(), outcomes.to.end(), [](auto n) { return n > 0; });
  return any ? json : Json::object();
}

void add_to(const Ways& from, Ways* to) {
  to->resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) (*to)[i] += from[i];
}

void add_to(const Outcomes& from, Outcomes* to) {
  add_to(from.to, &to->to);
  for (const auto& [key, ways] : from.turns) add_to(ways, &to->turns[key]);
}

Json branch_json(const Graph& graph, const Traces& traces, const Counter& counter,
                 const Togetherness& warps, uint32_t block) {
  Outcomes all;
  for (size_t c = 0; c < traces.classes.size(); ++c) add_to(counter.of(block, c), &all);
  Json json = outcomes_json(graph, block, all);
  if (json.empty()) return json;
  json["warps"] = warps.warps(block);
  json["divergent"] = warps.divergent(block);
  if (warps.rho(block) > 0) json["rho"] = warps.rho(block);
  if (traces.classes.size() == 1) return json;
  for (size_t c = 0; c < traces.classes.size(); ++c) {
    const Json of_class = outcomes_json(graph, block, counter.of(block, c));
    if (!of_class.empty()) json["classes"][traces.classes[c]] = of_class;
  }
  return json;
}

void make_plain(Json* branch) {
  branch->erase("rho");
  branch->erase("turns");
  if (!branch->contains("classes")) return;
  for (auto& [name, of_class] : (*branch)["classes"].items()) of_class.erase("turns");
}

}  // namespace

bool profile_of(const Graph& graph, const Loops& loops, const Traces& traces, const RunOptions& run,
                const ProfileOptions& options, std::string* json, std::string* why) {
  const Counter counter(graph, loops, traces);
  Togetherness warps(graph, counter, traces.classes.size());
  Result result;
  if (!replay(graph, traces, run, {}, &warps, &result, why)) return false;
  Json out = {{"format", "warpcache-branch-profile-1"}, {"source", options.source}};
  std::vector<uint64_t> weights(traces.classes.size());
  for (const ThreadTrace& thread : traces.threads) ++weights[thread.thread_class];
  for (size_t c = 0; c < weights.size(); ++c) out["classes"][traces.classes[c]] = weights[c];
  std::string lines;  // a branch each
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
    if (graph.blocks[b].successors.size() < 2) continue;
    Json branch = branch_json(graph, traces, counter, warps, b);
    if (options.plain) make_plain(&branch);
    if (branch.empty()) continue;
    lines += fmt::format("{}\n  {}: {}", lines.empty() ? "" : ",",
                         Json(graph.blocks[b].name).dump(), branch.dump());
  }
  std::string head = out.dump();
  head.pop_back();
  *json = head + ",\n \"branches\": {" + lines + "\n}}\n";
  return true;
}

}  // namespace warpcache::simt
