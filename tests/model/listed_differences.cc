// SPDX-License-Identifier: Apache-2.0
#include "model/listed_differences.h"

#include <algorithm>

namespace warpcache::model {

namespace {

bool sent_contains(const Parting& parting, std::string_view text) {
  return std::any_of(parting.sent.begin(), parting.sent.end(), [text](const std::string& bytes) {
    return bytes.find(text) != std::string::npos;
  });
}

bool says(const Side& side, std::string_view text) {
  return side.unit != nullptr && side.unit->shown == text;
}

// `watch`: memcached makes the connection a log from here on.
Effect watch(const Parting& parting) {
  const bool met = sent_contains(parting, "watch") && says(parting.ours, "ERROR\r\n");
  return met ? Effect::kEndsScript : Effect::kNone;
}

// memcached ends the error of a key that is too long with a line end of its own.
Effect long_key_in_get(const Parting& parting) {
  const bool met = sent_contains(parting, std::string(251, 'k')) && says(parting.theirs, "\r\n");
  return met ? Effect::kTheirsMore : Effect::kNone;
}

Effect statistic_names(const Parting& parting) {
  const bool met = parting.ours.unit != nullptr && parting.theirs.unit != nullptr &&
                   !parting.ours.unit->names.empty() && !parting.theirs.unit->names.empty();
  return met ? Effect::kAsAnswered : Effect::kNone;
}

constexpr ListedDifference kListed[] = {
    {"watch", "| `watch ...` | absent |", false, watch},
    {"key of 251 bytes in a get", "a key of more than 250 bytes in a `get`", false,
     long_key_in_get},
    {"names of statistics", "| `stats` | differs |", false, statistic_names},
};

}  // namespace

std::span<const ListedDifference> listed_differences() { return kListed; }

}  // namespace warpcache::model
