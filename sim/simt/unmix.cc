// SPDX-License-Identifier: Apache-2.0
#include "simt/unmix.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>

#include "simt/model.h"

namespace warpcache::simt {
namespace {

using Json = nlohmann::ordered_json;
using WayWeights = std::vector<double>;

constexpr double kFlowMin = 1e-7;  // of a thread: less is not followed any further
// Of one block: guesses on the way may make loops without an end.
constexpr double kVisitsMax = 300;
constexpr uint32_t kSweeps = 20;  // what is found at one branch tells who comes to the next

WayWeights ways_of(const Graph& graph, uint32_t block, const Json& entry) {
  const auto& successors = graph.blocks[block].successors;
  WayWeights ways(successors.size());
  if (!entry.contains("to")) return ways;
  double sum = 0;
  for (size_t i = 0; i < ways.size(); ++i) {
    ways[i] = entry["to"].value(successor_name(graph, successors[i]), 0.0);
    sum += ways[i];
  }
  for (double& way : ways) way = sum > 0 ? way / sum : 0;
  return ways;
}

bool any_way(const WayWeights& ways) {
  return std::any_of(ways.begin(), ways.end(), [](double way) { return way > 0; });
}

// How threads of one kind go: of each branch the probability of each way, none where not known.
using Habits = std::vector<WayWeights>;

// How often a thread comes to each block. What a function is called for comes back.
std::vector<double> visits_of(const Graph& graph, uint32_t function, const Habits& habits) {
  std::vector<double> visits(graph.blocks.size());
  std::vector<double> waiting(graph.blocks.size());
  std::deque<uint32_t> open;
  const auto bring = [&](uint32_t to, double flow) {
    if (!is_block(to) || flow <= 0) return;
    if (waiting[to] < kFlowMin && waiting[to] + flow >= kFlowMin) open.push_back(to);
    waiting[to] += flow;
  };
  bring(graph.functions[function].entry, 1);
  while (!open.empty()) {
    const uint32_t at = open.front();
    open.pop_front();
    const double flow = std::exchange(waiting[at], 0);
    visits[at] += flow;
    if (visits[at] > kVisitsMax) continue;
    const Block& block = graph.blocks[at];
    if (block.call != kNone) bring(graph.functions[block.call].entry, flow);
    for (size_t i = 0; i < block.successors.size(); ++i) {
      bring(block.successors[i], block.successors.size() == 1 ? flow : flow * habits[at][i]);
    }
  }
  return visits;
}

class Unmixer {
 public:
  Unmixer(const Graph& graph, uint32_t function, const Mixture& mixture, Json* merged)
      : graph_(graph),
        function_(function),
        mixture_(mixture),
        out_(*merged),
        mixed_(Json::parse(mixture.profile)) {}

  void run() {
    read();
    const std::vector<double> mixed_visits = visits_of(graph_, function_, habits_of_mixture_);
    for (uint32_t sweep = 0; sweep < kSweeps; ++sweep) {
      for (One& one : classes_) one.visits = visits_of(graph_, function_, one.habits);
      for (uint32_t b = 0; b < graph_.blocks.size(); ++b) {
        if (any_way(habits_of_mixture_[b])) share_out(b, mixed_visits[b], sweep >= kSweeps / 2);
      }
    }
    for (uint32_t b = 0; b < graph_.blocks.size(); ++b) write(b);
  }

 private:
  struct One {
    std::string name;
    double share;
    Habits habits;
    std::vector<bool> is_known = {};  // by a profile of its own
    std::vector<double> visits = {};
  };

  void read() {
    const size_t count = graph_.blocks.size();
    for (uint32_t b = 0; b < count; ++b) {
      const Json entry = entry_of(mixed_, b);
      habits_of_mixture_.push_back(ways_of(graph_, b, entry));
      is_vote_.push_back(entry.contains("vote"));
    }
    for (const auto& [name, share] : mixture_.shares) {
      One one{name, share, habits_of_mixture_};
      one.is_known.resize(count);
      for (uint32_t b = 0; b < count; ++b) {
        const WayWeights own = ways_of(graph_, b, entry_of_class(b, name));
        if (!any_way(own)) continue;
        one.is_known[b] = true;
        // A warp's vote takes lanes of all classes along.
        if (!is_vote_[b]) one.habits[b] = own;
      }
      classes_.push_back(std::move(one));
    }
  }

  Json entry_of(const Json& profile, uint32_t block) const {
    const auto& branches = profile.at("branches");
    const auto found = branches.find(graph_.blocks[block].name);
    return found == branches.end() ? Json::object() : *found;
  }
  Json entry_of_class(uint32_t block, const std::string& name) const {
    return entry_of(out_, block).value("classes", Json::object()).value(name, Json::object());
  }

  // What of the mixture's threads at this branch the classes that are known there leave over is
  // what the others did.
  void share_out(uint32_t block, double visits, bool is_settled) {
    if (is_vote_[block]) return;
    const double chance = kChance * visits;
    WayWeights left = habits_of_mixture_[block];
    for (double& way : left) way *= visits;
    for (const One& one : classes_) {
      if (!one.is_known[block]) continue;
      for (size_t i = 0; i < left.size(); ++i) {
        left[i] -= one.share * one.visits[block] * one.habits[block][i];
      }
    }
    if (is_settled && *std::min_element(left.begin(), left.end()) < -kContradiction * visits) {
      // In this company they do something else than alone.
      for (One& one : classes_) {
        one.is_known[block] = false;
        one.habits[block] = habits_of_mixture_[block];
      }
      return;
    }
    double sum = 0;
    for (double& way : left) {
      if (way <= chance) way = 0;
      sum += way;
    }
    if (sum == 0) return;
    for (double& way : left) way /= sum;
    std::vector<One*> unknown;
    for (One& one : classes_) {
      if (one.is_known[block] || one.visits[block] < kFlowMin) continue;
      one.habits[block] = left;
      unknown.push_back(&one);
    }
    if (left.size() == 2 && unknown.size() > 1) part(block, left, unknown);
  }

  // Where as many threads go each way as there are of some classes and of the others, each class
  // goes its own way.
  static void part(uint32_t block, const WayWeights& left, const std::vector<One*>& unknown) {
    double sum = 0;
    for (const One* one : unknown) sum += one->share * one->visits[block];
    double best = kChance;
    uint32_t best_set = 0;
    for (uint32_t set = 1; set + 1 < 1u << unknown.size(); ++set) {
      double share = 0;
      for (size_t i = 0; i < unknown.size(); ++i) {
        if ((set >> i & 1) != 0) share += unknown[i]->share * unknown[i]->visits[block] / sum;
      }
      if (std::abs(share - left[1]) >= best) continue;
      best = std::abs(share - left[1]);
      best_set = set;
    }
    for (size_t i = 0; i < unknown.size() && best_set != 0; ++i) {
      const double takes = (best_set >> i & 1) != 0 ? 1 : 0;
      unknown[i]->habits[block] = {1 - takes, takes};
    }
  }

  void write(uint32_t block) {
    const Json mixed = entry_of(mixed_, block);
    if (!mixed.contains("to")) return;
    Json& branch = out_["branches"][graph_.blocks[block].name];
    for (const char* key : {"rho", "vote", "one", "to"}) {
      if (!branch.contains(key) && mixed.contains(key)) branch[key] = mixed[key];
    }
    const WayWeights votes = is_vote_[block] ? votes_left(block) : WayWeights();
    for (const One& one : classes_) {
      if (one.is_known[block] || one.visits[block] < kFlowMin) continue;
      const WayWeights& ways = votes.empty() ? one.habits[block] : votes;
      Json& entry = branch["classes"][one.name];
      entry = Json::object();
      for (size_t i = 0; i < ways.size(); ++i) {
        entry["to"][successor_name(graph_, graph_.blocks[block].successors[i])] = ways[i];
      }
      if (mixed.contains("trips") && votes.empty()) entry["trips"] = mixed["trips"];
    }
  }

  // Who votes for what is not told: as many as are missing to what the mixture's warps did.
  WayWeights votes_left(uint32_t block) const {
    const std::string way = entry_of(mixed_, block)["vote"];
    const auto& successors = graph_.blocks[block].successors;
    const size_t at = successor_name(graph_, successors[0]) == way ? 0 : 1;
    double most = 0;
    for (const One& one : classes_) {
      if (!one.is_known[block]) continue;
      most = std::max(most, ways_of(graph_, block, entry_of_class(block, one.name))[at]);
    }
    const double mixed = habits_of_mixture_[block][at];
    WayWeights ways(2);
    ways[at] = mixed > most + kVotesMin ? mixed : 0;
    ways[1 - at] = 1 - ways[at];
    return ways;
  }

  static constexpr double kVotesMin = 0.02;       // less is chance, as is a smaller part than
  static constexpr double kChance = 0.01;         // this of a mixture's threads at a branch
  static constexpr double kContradiction = 0.05;  // as many less than a class would bring

  const Graph& graph_;
  uint32_t function_;
  const Mixture& mixture_;
  Json& out_;
  Json mixed_;
  Habits habits_of_mixture_;
  std::vector<One> classes_;
  std::vector<bool> is_vote_;
};

bool is_profile(const Json& json) {
  return json.is_object() && json.contains("branches") && json["branches"].is_object();
}

}  // namespace

bool learn_from_mixture(const Graph& graph, uint32_t function, const Mixture& mixture,
                        std::string* json, std::string* why) {
  Json merged = Json::parse(*json, nullptr, false);
  const Json mixed = Json::parse(mixture.profile, nullptr, false);
  if (!is_profile(merged) || !is_profile(mixed)) {
    *why = "no branch profile";
    return false;
  }
  double sum = 0;
  for (const auto& [name, share] : mixture.shares) sum += share;
  if (!(sum > 0)) {
    *why = "the shares make nothing";
    return false;
  }
  Mixture normal = mixture;
  for (auto& [name, share] : normal.shares) {
    share /= sum;
    if (!merged["classes"].contains(name)) merged["classes"][name] = 1;
  }
  Unmixer(graph, function, normal, &merged).run();
  *json = merged.dump() + "\n";
  return true;
}

}  // namespace warpcache::simt
