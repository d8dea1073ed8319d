// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "simt/model.h"

namespace warpcache::simt {
namespace {

using Json = nlohmann::ordered_json;

// Adds one profile's branches as those of class `name`.
void add_class(const std::string& name, const Json& profile, Json* out) {
  (*out)["classes"][name] = 1;
  for (const auto& [block, branch] : profile.at("branches").items()) {
    Json& merged = (*out)["branches"][block];
    for (const char* key : {"to", "ways", "turns", "stay", "trips"}) {
      if (branch.contains(key)) merged["classes"][name][key] = branch[key];
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
                      (!profile.contains("classes") || profile["classes"].size() == 1);
    if (!fits) {
      *why = name + ": no branch profile of one class";
      return false;
    }
    add_class(name, profile, &out);
  }
  *json = out.dump() + "\n";
  return true;
}

}  // namespace warpcache::simt
