// SPDX-License-Identifier: Apache-2.0
//
// Is there an order of a key's operations that respects time and sessions, in which each operation
// has the outcome that its client saw? A depth-first search over the orders, after Wing and Gong,
// which never visits the same set of operations with the same state twice (Lowe).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stress/register_model.h"

namespace warpcache::stress {

enum class Linearizable : uint8_t { kYes, kNo, kUndecided };

struct CheckResult {
  Linearizable verdict = Linearizable::kYes;
  State last;           // with kYes: the state of the key at the end
  uint64_t steps = 0;   // states visited
  std::string because;  // else: the longest order found, and what cannot follow it
};

inline constexpr uint32_t kSessionsMax = 64;

// `history`: the operations of one key, those of a session in order. `initial`: the state of the
// key before. `book` learns the CAS ids of the history. kUndecided after `steps_max` states.
CheckResult check_history(const std::vector<Operation>& history, const State& initial,
                          CasBook* book, uint64_t steps_max = 20'000'000);

}  // namespace warpcache::stress
