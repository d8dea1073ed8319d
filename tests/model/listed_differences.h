// SPDX-License-Identifier: Apache-2.0
//
// The differences from memcached that docs/compatibility.md lists. A comparison accepts only these.
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
  const AnswerUnit* unit = nullptr;  // null: there is no further unit
  const AnswerUnit* next = nullptr;
  Standing standing = Standing::kInStep;
};

// The first place where the answers to a stream's messages of one round differ.
struct Parting {
  const std::vector<std::string>& sent;
  Side ours;
  Side theirs;
  bool binary = false;
  const History& before;  // this round included
  int64_t now = 0;
};

enum class Effect : uint8_t {
  kNone,        // another difference
  kAsAnswered,  // the units count as equal; the comparison continues after both
  kOursMore,    // the unit of warpcached is ignored
  kTheirsMore,  // the unit of memcached is ignored
  kEndsScript,  // from here on, items may differ, or the bytes that are read as commands
};

struct ListedDifference {
  std::string_view name;
  std::string_view anchor;  // occurs literally in docs/compatibility.md
  Effect (*effect)(const Parting& parting);
  // Items may differ although the answers do not: also checked for each stream at the end of a
  // round.
  bool hidden = false;
  bool of_1_6_18 = false;  // a difference from 1.6.18, not from 1.6.45
};

std::span<const ListedDifference> listed_differences();

}  // namespace warpcache::model
