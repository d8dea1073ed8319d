// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "simt/model.h"

namespace warpcache::simt {
namespace {

using Json = nlohmann::ordered_json;

// Whether threads went more than one way: only then a correlation says something.
bool is_open(const Json& branch) {
  size_t ways = 0;
  if (branch.contains("to")) {
    for (const auto& [successor, weight] : branch["to"].items()) ways += weight > 0 ? 1u : 0u;
  }
  return ways > 1;
}

// Adds one profile's branches as those of class `name`. Where a warp's lanes decide as one, in
// every class that decides at all, those of a mixture do.
void add_class(const std::string& name, const Json& profile, Json* out) {
  const bool has_classes = profile.contains("classes") && profile["classes"].size() > 1;
  (*out)["classes"][name] = 1;
  for (const auto& [block, branch] : profile.at("branches").items()) {
    Json& merged = (*out)["branches"][block];
    const Json outcomes =
        has_classes ? branch.value("classes", Json::object()).value(name, Json::object()) : branch;
    for (const char* key : {"to", "ways", "turns", "stay", "trips"}) {
      if (outcomes.contains(key)) merged["classes"][name][key] = outcomes[key];
    }
    if (branch.contains("rho") && is_open(branch)) {
      const double rho = branch["rho"];
      merged["rho"] = std::min(rho, merged.value("rho", 1.0));
    }
    for (const char* key : {"vote", "one"}) {
      if (branch.contains(key)) merged[key] = branch[key];
    }
    // What classes without counts of their own take.
    if (!merged.contains("to") && branch.contains("to")) merged["to"] = branch["to"];
  }
}

}  // namespace

bool merge_profiles(const std::vector<std::pair<std::string, std::string>>& profiles,
                    std::string* json, std::string* why) {
  Json out = {{"format", "warpcache-branch-profile-1"}, {"source", "merged"}};
  for (const auto& [name, text] : profiles) {
    const Json profile = Json::parse(text, nullptr, false);
    const bool fits = profile.is_object() && profile.value("format", "") == out["format"] &&
                      profile.contains("branches") && profile["branches"].is_object() &&
                      (!profile.contains("classes") || profile["classes"].size() == 1 ||
                       profile["classes"].contains(name));
    if (!fits) {
      *why = name + ": no branch profile of one class";
      return false;
    }
    add_class(name, profile, &out);
  }
  *json = out.dump() + "\n";
  return true;
}

bool liken(const std::vector<std::pair<std::string, std::string>>& likes, std::string* json,
           std::string* why) {
  Json out = Json::parse(*json);
  for (const auto& [name, other] : likes) {
    if (!out["classes"].contains(name) || !out["classes"].contains(other)) {
      *why = fmt::format("{}={}: no such classes", name, other);
      return false;
    }
    for (auto& [block, branch] : out["branches"].items()) {
      if (!branch.contains("classes")) continue;
      Json& classes = branch["classes"];
      if (!classes.contains(name) && classes.contains(other)) classes[name] = classes[other];
    }
  }
  *json = out.dump() + "\n";
  return true;
}

}  // namespace warpcache::simt
