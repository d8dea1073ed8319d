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

constexpr std::string_view kBadFormat = "CLIENT_ERROR bad command line format\r\n";
constexpr size_t kKeySizeMax = 250;

// A line of the get family has a key that is too long.
bool gets_long_key(const std::string& bytes) {
  size_t word = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    word = bytes[at] == ' ' || bytes[at] == '\n' ? 0 : word + 1;
    if (word > kKeySizeMax && (bytes.starts_with("get") || bytes.starts_with("gat"))) return true;
  }
  return false;
}

// memcached ends the error with a second line end, and takes back one reply that went before for
// each key that was missed.
Effect long_key_in_get(const Parting& parting) {
  if (std::none_of(parting.sent.begin(), parting.sent.end(), gets_long_key)) return Effect::kNone;
  if (says(parting.theirs, "\r\n")) return Effect::kTheirsMore;
  return says(parting.theirs, kBadFormat) ? Effect::kOursMore : Effect::kNone;
}

// memcached keeps its replies back until it has read the whole body of the next request.
Effect reply_ahead_of_body(const Parting& parting) {
  const bool met = parting.theirs.unit == nullptr && parting.ours.unit != nullptr &&
                   parting.theirs.standing == Standing::kWaits &&
                   parting.ours.standing == Standing::kWaits;
  return met ? Effect::kOursMore : Effect::kNone;
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
    {"replies ahead of an unfinished body", "ahead of an unfinished body", false,
     reply_ahead_of_body},
    {"names of statistics", "| `stats` | differs |", false, statistic_names},
};

}  // namespace

std::span<const ListedDifference> listed_differences() { return kListed; }

}  // namespace warpcache::model
