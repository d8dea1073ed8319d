// SPDX-License-Identifier: Apache-2.0
#include "simt/model.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace warpcache::simt {
namespace {

using SortedJson = nlohmann::json;

constexpr const char* kFormat = "warpcache-branch-profile-1";
constexpr uint32_t kTripsMax = 1'000'000;

bool parse_trip_count(std::string_view text, uint32_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && *out <= kTripsMax;
}

std::vector<double> equal(size_t count) {
  return std::vector<double>(count, 1.0 / static_cast<double>(count));
}

// Refuses by an exception that read_model() catches; none leaves this file.
struct Refused {
  std::string why;
};

double number(const SortedJson& value, const std::string& what, double max) {
  if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > max) {
    throw Refused{fmt::format("{}: expected a number from 0 to {}", what, max)};
  }
  return value.get<double>();
}

std::vector<double> normalized(std::vector<double> weights, const std::string& what) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(sum > 0)) throw Refused{what + ": the weights make nothing"};
  for (double& weight : weights) weight /= sum;
  return weights;
}

class ModelReader {
 public:
  ModelReader(const Graph& graph, const Loops& loops, Model* out)
      : graph_(graph), loops_(loops), out_(*out) {}

  void read(const SortedJson& json) {
    if (json.value("format", "") != kFormat) {
      throw Refused{fmt::format("its \"format\" is not {}", kFormat)};
    }
    out_ = equal_model(graph_);
    if (json.contains("classes")) read_classes(json["classes"]);
    out_.class_rho = number(json.value("class_rho", SortedJson(0)), "class_rho", 1);
    if (json.contains("rounds")) read_rounds(json["rounds"]);
    std::unordered_map<std::string, uint32_t> index;
    for (uint32_t b = 0; b < graph_.blocks.size(); ++b) index[graph_.blocks[b].name] = b;
    const SortedJson branches = json.value("branches", SortedJson::object());
    for (const auto& [name, entry] : branches.items()) {
      const auto found = index.find(name);
      if (found == index.end()) throw Refused{fmt::format("block {} is not in the graph", name)};
      read_branch(found->second, entry);
    }
  }

 private:
  void read_classes(const SortedJson& classes) {
    std::vector<double> weights;
    out_.classes.clear();
    for (const auto& [name, weight] : classes.items()) {
      out_.classes.push_back({name, 0});
      weights.push_back(number(weight, "class " + name, 1e18));
    }
    weights = normalized(weights, "classes");
    for (size_t i = 0; i < weights.size(); ++i) out_.classes[i].weight = weights[i];
    for (BranchModel& branch : out_.branches) {
      if (!branch.classes.empty()) branch.classes.resize(weights.size(), branch.classes[0]);
    }
  }

  void read_rounds(const SortedJson& rounds) {
    out_.rounds.capacity = number(rounds.value("capacity", SortedJson()), "rounds: capacity", 1e18);
    out_.rounds.size.assign(out_.classes.size(), -1);
    const SortedJson sizes = rounds.value("sizes", SortedJson::object());
    for (const auto& [name, size] : sizes.items()) {
      out_.rounds.size[class_index(name)] =
          number(size, "rounds: size of " + name, out_.rounds.capacity);
    }
  }

  void read_branch(uint32_t block, const SortedJson& entry) {
    BranchModel& model = out_.branches[block];
    const std::string& name = graph_.blocks[block].name;
    if (model.classes.empty()) throw Refused{fmt::format("block {} does not branch", name)};
    model.rho = number(entry.value("rho", SortedJson(0)), name + ": rho", 1);
    model.held = entry.value("held", false);
    model.vote = read_way(block, entry, "vote");
    model.one = read_way(block, entry, "one");
    model.round = read_way(block, entry, "round");
    model.more_rounds = read_way(block, entry, "more_rounds");
    const bool by_rounds = model.round != kNone || model.more_rounds != kNone;
    if (by_rounds && (out_.rounds.size.empty() || graph_.blocks[block].successors.size() != 2)) {
      throw Refused{fmt::format("block {}: rounds need \"rounds\" and two ways", name)};
    }
    for (Branch& branch : model.classes) read_outcomes(block, entry, &branch);
    const SortedJson classes = entry.value("classes", SortedJson::object());
    for (const auto& [class_name, outcomes] : classes.items()) {
      read_outcomes(block, outcomes, &model.classes[class_index(class_name)]);
    }
  }

  size_t class_index(const std::string& name) const {
    for (size_t i = 0; i < out_.classes.size(); ++i) {
      if (out_.classes[i].name == name) return i;
    }
    throw Refused{fmt::format("class {} is not among \"classes\"", name)};
  }

  void read_outcomes(uint32_t block, const SortedJson& entry, Branch* out) const {
    const std::string& name = graph_.blocks[block].name;
    if (entry.contains("to")) out->probability = read_to(block, entry["to"]);
    if (entry.contains("turns")) read_turns(block, entry, out);
    const bool has_trips = entry.contains("trips");
    if (!has_trips && !entry.contains("stay")) return;
    if (loops_.left_at(graph_, block) == kNone) {
      throw Refused{fmt::format("block {} has \"trips\" or \"stay\" but leaves no loop", name)};
    }
    out->stay = has_trips ? read_trips(name, entry["trips"]) : read_stay(name, entry["stay"]);
  }

  // "turns": [[inner, outer, count, ...], ...], counts in the order of "ways".
  void read_turns(uint32_t block, const SortedJson& entry, Branch* out) const {
    const Block& from = graph_.blocks[block];
    const std::string what = from.name + ": turns";
    const SortedJson ways = entry.value("ways", SortedJson::array());
    std::vector<size_t> order;
    for (const SortedJson& way : ways)
      order.push_back(successor_index(from, way.get<std::string>()));
    out->turns.clear();
    for (const SortedJson& turn : entry["turns"]) {
      if (!turn.is_array() || turn.size() != order.size() + 2) {
        throw Refused{what + ": expected [inner, outer, and a count for each of \"ways\"]"};
      }
      std::vector<double> weights(from.successors.size());
      for (size_t i = 0; i < order.size(); ++i) weights[order[i]] = number(turn[i + 2], what, 1e18);
      const auto inner = static_cast<uint32_t>(number(turn[0], what, kTurnsMax));
      const auto outer = static_cast<uint32_t>(number(turn[1], what, kTurnsMax));
      out->turns[turn_key(inner, outer)] = normalized(weights, what);
    }
  }

  std::vector<double> read_to(uint32_t block, const SortedJson& to) const {
    const Block& from = graph_.blocks[block];
    std::vector<double> weights(from.successors.size());
    for (const auto& [name, weight] : to.items()) {
      const size_t i = successor_index(from, name);
      weights[i] = number(weight, from.name + " to " + name, 1e18);
    }
    return normalized(weights, "block " + from.name);
  }

  uint32_t read_way(uint32_t block, const SortedJson& entry, const char* key) const {
    if (!entry.contains(key)) return kNone;
    const std::string name = entry[key].get<std::string>();
    return static_cast<uint32_t>(successor_index(graph_.blocks[block], name));
  }

  size_t successor_index(const Block& from, const std::string& name) const {
    for (size_t i = 0; i < from.successors.size(); ++i) {
      if (successor_name(graph_, from.successors[i]) == name) return i;
    }
    throw Refused{fmt::format("block {} does not lead to {}", from.name, name)};
  }

  static std::vector<double> read_trips(const std::string& name, const SortedJson& trips) {
    std::vector<double> stay;
    if (trips.is_object()) {
      const std::string what = name + ": trips";
      std::vector<double> weights;
      for (const auto& [count, weight] : trips.items()) {
        uint32_t n;
        if (!parse_trip_count(count, &n))
          throw Refused{fmt::format("{}: bad trip count {}", name, count)};
        if (weights.size() <= n) weights.resize(n + 1);
        weights[n] = number(weight, what, 1e18);
      }
      return stay_from_trips(normalized(weights, name + ": trips"));
    }
    const std::string text = trips.is_string() ? trips.get<std::string>() : trips.dump();
    if (!parse_trips(text, &stay)) throw Refused{name + ": bad trips " + text};
    return stay;
  }

  // Probabilities, or [executed, stayed] pairs of a profile.
  static std::vector<double> read_stay(const std::string& name, const SortedJson& entries) {
    std::vector<double> stay;
    for (const SortedJson& entry : entries) {
      if (!entry.is_array()) {
        stay.push_back(number(entry, name + ": stay", 1));
      } else if (entry.size() == 2 && number(entry[0], name + ": stay", 1e18) > 0) {
        stay.push_back(number(entry[1], name + ": stay", entry[0].get<double>()) /
                       entry[0].get<double>());
      } else {
        throw Refused{name + ": stay: expected [executed, stayed]"};
      }
    }
    if (stay.empty()) throw Refused{name + ": stay is empty"};
    return stay;
  }

  const Graph& graph_;
  const Loops& loops_;
  Model& out_;
};

}  // namespace

std::string successor_name(const Graph& graph, uint32_t to) {
  if (to == kExit) return "exit";
  if (to == kReturn) return "return";
  return graph.blocks[to].name;
}

Model equal_model(const Graph& graph) {
  Model model;
  model.classes = {{"all", 1}};
  model.branches.resize(graph.blocks.size());
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
    const Block& block = graph.blocks[b];
    if (block.successors.size() < 2) continue;
    const auto probability = block.weights.empty() ? equal(block.successors.size()) : block.weights;
    model.branches[b].classes = {{probability, {}, {}}};
  }
  return model;
}

bool read_model(const std::string& json, const Graph& graph, const Loops& loops, Model* out,
                std::string* why) {
  try {
    ModelReader(graph, loops, out).read(SortedJson::parse(json));
    return true;
  } catch (const Refused& refused) {
    *why = refused.why;
  } catch (const SortedJson::exception& error) {
    *why = error.what();
  }
  return false;
}

bool parse_number(std::string_view text, double* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_numbers(const std::string& text, std::vector<std::pair<std::string, double>>* out) {
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(',', from), text.size());
    const std::string part = text.substr(from, end - from);
    from = end + 1;
    const size_t equals = std::min(part.find('='), part.size());
    double number = 0;
    if (equals == part.size() ||
        !parse_number(std::string_view(part).substr(equals + 1), &number) || !(number >= 0)) {
      return false;
    }
    out->emplace_back(part.substr(0, equals), number);
  }
  return true;
}

bool parse_weights(const std::string& text, const std::vector<std::string>& classes,
                   std::vector<double>* out, std::string* why) {
  std::vector<std::pair<std::string, double>> weights;
  bool fits = parse_numbers(text, &weights);
  out->assign(classes.size(), 0.0);
  double sum = 0;
  for (const auto& [name, weight] : weights) {
    const auto one = std::find(classes.begin(), classes.end(), name);
    if (one == classes.end()) {
      fits = false;
      break;
    }
    (*out)[static_cast<size_t>(one - classes.begin())] = weight;
    sum += weight;
  }
  if (!fits) {
    *why = fmt::format("\"{}\": expected CLASS=WEIGHT,... of the classes {}", text,
                       fmt::join(classes, ", "));
    return false;
  }
  for (double& weight : *out) weight /= sum;
  if (!(sum > 0)) *why = "the weights make nothing";
  return sum > 0;
}

bool reweight(const std::string& weights, Model* model, std::string* why) {
  std::vector<std::string> names;
  for (const ThreadClass& one : model->classes) names.push_back(one.name);
  std::vector<double> parsed;
  if (!parse_weights(weights, names, &parsed, why)) return false;
  for (size_t i = 0; i < parsed.size(); ++i) model->classes[i].weight = parsed[i];
  return true;
}

EdgeSet edges_taken(const Graph& graph, const Model& model, const Loops& loops) {
  EdgeSet taken(graph.blocks.size());
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
    const Block& block = graph.blocks[b];
    taken[b].assign(block.successors.size(), model.branches[b].classes.empty());
    const uint32_t loop = loops.left_at(graph, b);
    for (size_t c = 0; c < model.branches[b].classes.size(); ++c) {
      if (model.classes[c].weight == 0) continue;
      const Branch& branch = model.branches[b].classes[c];
      for (size_t i = 0; i < block.successors.size(); ++i) {
        bool may = branch.probability[i] > 0;
        if (branch.is_loop()) {
          const bool stays = loops.holds(loop, block.successors[i]);
          const auto matters = [&](double p) { return stays ? p > 0 : p < 1; };
          may = std::any_of(branch.stay.begin(), branch.stay.end(), matters);
        }
        taken[b][i] = taken[b][i] || may;
      }
    }
  }
  return taken;
}

Model augmented_model(const Graph& graph, const EdgeSet& taken) {
  Model model = equal_model(graph);
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
    if (model.branches[b].classes.empty()) continue;
    const auto count = std::count(taken[b].begin(), taken[b].end(), true);
    if (count == 0) continue;
    std::vector<double>& probability = model.branches[b].classes[0].probability;
    for (size_t i = 0; i < probability.size(); ++i) {
      probability[i] = taken[b][i] ? 1.0 / static_cast<double>(count) : 0;
    }
  }
  return model;
}

bool parse_trips(const std::string& text, std::vector<double>* stay) {
  const size_t plus = text.find('+');
  const std::string fixed = text.substr(0, plus);
  const std::string rest = plus == std::string::npos ? text : text.substr(plus + 1);
  uint32_t first = 0;
  if (plus != std::string::npos && !parse_trip_count(fixed, &first)) return false;
  uint32_t low;
  uint32_t high;
  double p;
  stay->assign(first, 1.0);
  if (rest.starts_with("geometric:")) {
    if (!parse_number(std::string_view(rest).substr(10), &p) || !(p >= 0) || !(p < 1)) return false;
    stay->push_back(p);
    return true;
  }
  if (rest.starts_with("uniform:")) {
    const size_t colon = std::min(rest.find(':', 8), rest.size() - 1);
    if (!parse_trip_count(std::string_view(rest).substr(8, colon - 8), &low) ||
        !parse_trip_count(std::string_view(rest).substr(colon + 1), &high) || high < low) {
      return false;
    }
    std::vector<double> weights(high + 1, 0.0);
    std::fill(weights.begin() + low, weights.end(), 1.0);
    const std::vector<double> drawn = stay_from_trips(weights);
    stay->insert(stay->end(), drawn.begin(), drawn.end());
    return true;
  }
  if (!parse_trip_count(rest, &low)) return false;
  stay->insert(stay->end(), low, 1.0);
  stay->push_back(0.0);
  return true;
}

std::vector<double> stay_from_trips(const std::vector<double>& weights) {
  double left = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> stay;
  for (const double weight : weights) {
    if (!(left > 0)) break;
    stay.push_back(std::clamp((left - weight) / left, 0.0, 1.0));
    left -= weight;
  }
  stay.back() = 0;
  return stay;
}

}  // namespace warpcache::simt
