// SPDX-License-Identifier: Apache-2.0
//
// Is there an order of a key's operations that respects time and sessions, in which each had the
// outcome that its client saw? A depth-first search over orders, after Wing and Gong, that never
// looks at the same set of operations with the same state twice (Lowe).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stress/register_model.h"

namespace warpcache::stress {

enum class Linearizable : uint8_t { kYes, kNo, kUndecided };

struct CheckResult {
  Linearizable verdict = Linearizable::kYes;
  State last;           // with kYes: what the key holds in the end
  uint64_t steps = 0;   // states looked at
  std::string because;  // else: the longest order found and what cannot follow it
};

inline constexpr uint32_t kSessionsMax = 64;

// `history`: one key's operations, those of a session in its order. `initial`: what the key held
// before. `book` learns the CAS ids of the history. kUndecided after `steps_max` states.
CheckResult check_history(const std::vector<Operation>& history, const State& initial,
                          CasBook* book, uint64_t steps_max = 20'000'000);

}  // namespace warpcache::stress
