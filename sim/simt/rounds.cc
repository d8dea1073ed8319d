// SPDX-License-Identifier: Apache-2.0
#include "simt/rounds.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace warpcache::simt {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kLanes = 32;         // of the warps that were profiled
constexpr double kNear = 0.01;          // of a share that is to be one round's
constexpr double kDividedRhoMax = 0.5;  // above it a warp goes as a whole

// Of a class's threads the share that goes `way`; below 0: it is not known.
double share_of(const Json& branch, const std::string& name, const std::string& way) {
  const Json outcomes = branch.value("classes", Json::object()).value(name, Json::object());
  if (!outcomes.contains("to")) return -1;
  double sum = 0;
  for (const auto& [to, weight] : outcomes["to"].items()) sum += weight.get<double>();
  return sum > 0 ? outcomes["to"].value(way, 0.0) / sum : -1;
}

struct Class {
  std::string name;
  uint32_t rounds;  // of a warp of it alone
};

// Whether in every class `share` of its number of rounds is what goes `way`, and the numbers differ
// where it is known: else it may be chance.
template <typename Share>
bool fits(const Json& branch, const std::string& way, const std::vector<Class>& classes,
          const Share& share) {
  std::set<uint32_t> numbers;
  for (const Class& one : classes) {
    const double found = share_of(branch, one.name, way);
    if (found < 0) continue;
    if (std::abs(found - share(one.rounds)) > kNear) return false;
    numbers.insert(one.rounds);
  }
  return numbers.size() > 1;
}

bool mark(Json& branch, const std::vector<Class>& classes) {
  if (!branch.contains("to")) return false;
  if (branch.contains("vote")) {
    const std::string way = branch["vote"];
    if (!fits(branch, way, classes, [](uint32_t rounds) { return 1 - 1.0 / rounds; })) return false;
    branch["more_rounds"] = way;
    return true;
  }
  if (branch.value("rho", 0.0) > kDividedRhoMax) return false;
  std::set<std::string> ways;
  for (const Class& one : classes) {
    const Json outcomes = branch.value("classes", Json::object()).value(one.name, Json::object());
    if (!outcomes.contains("to")) continue;
    for (const auto& [way, weight] : outcomes["to"].items()) ways.insert(way);
  }
  for (const std::string& way : ways) {
    if (!fits(branch, way, classes, [](uint32_t rounds) { return 1.0 / rounds; })) continue;
    branch["round"] = way;
    return true;
  }
  return false;
}

}  // namespace

std::vector<uint32_t> rounds_of(double capacity, const std::vector<double>& size) {
  std::vector<uint32_t> rounds(size.size());
  uint32_t round = 1;
  double used = 0;
  for (size_t lane = 0; lane < size.size(); ++lane) {
    if (size[lane] <= 0) continue;
    if (used + size[lane] > capacity) {
      ++round;
      used = 0;
    }
    used += size[lane];
    rounds[lane] = round;
  }
  return rounds;
}

bool mark_rounds(double capacity, const std::vector<std::pair<std::string, double>>& sizes,
                 std::string* json, std::string* why) {
  Json out = Json::parse(*json);
  std::vector<Class> classes;
  out["rounds"] = {{"capacity", capacity}, {"sizes", Json::object()}};
  for (const auto& [name, size] : sizes) {
    if (!out["classes"].contains(name) || !(size >= 0) || size > capacity) {
      *why = fmt::format("{}={}: no class, or more than the capacity", name, size);
      return false;
    }
    out["rounds"]["sizes"][name] = size;
    if (size == 0) continue;
    classes.push_back({name, rounds_of(capacity, std::vector<double>(kLanes, size)).back()});
  }
  bool any = false;
  for (auto& [block, branch] : out["branches"].items()) any = mark(branch, classes) || any;
  if (!any) {
    *why = "no branch goes by rounds, or all classes take the same number of them";
    return false;
  }
  *json = out.dump() + "\n";
  return true;
}

}  // namespace warpcache::simt
