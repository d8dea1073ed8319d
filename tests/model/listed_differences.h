// SPDX-License-Identifier: Apache-2.0
//
// The differences from memcached that docs/compatibility.md lists: a comparison lets these pass and
// no other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/answer_units.h"
#include "model/sent.h"
#include "model/server_process.h"

namespace warpcache::model {

// One side of an exchange that differs.
struct Side {
  const AnswerUnit* unit = nullptr;  // null: it says nothing more
  const AnswerUnit* next = nullptr;
  Standing standing = Standing::kInStep;
};

// Where the answers to the messages of one stream in one round part.
struct Parting {
  const std::vector<std::string>& sent;
  Side ours;
  Side theirs;
  bool binary = false;
  const History& before;  // with this round
  int64_t now = 0;
};

enum class Effect : uint8_t {
  kNone,        // another difference
  kAsAnswered,  // the units count as equal, and the comparison goes on behind both
  kOursMore,    // the unit of ours counts as not said
  kTheirsMore,  // the unit of memcached counts as not said
  kEndsScript,  // what is stored or what is read as a command may differ from here on
};

struct ListedDifference {
  std::string_view name;
  std::string_view anchor;  // stands in docs/compatibility.md word for word
  Effect (*effect)(const Parting& parting);
  // What is stored may differ though the answers do not: asked for each stream at the end of a
  // round as well.
  bool hidden = false;
  bool of_1_6_18 = false;  // and not of the yardstick
};

std::span<const ListedDifference> listed_differences();

}  // namespace warpcache::model
