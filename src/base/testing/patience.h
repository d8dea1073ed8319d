// SPDX-License-Identifier: Apache-2.0
//
// How long a test waits for what must come. Only a failing test waits so long: no machine is too
// slow for it. testing/harness/patience.py is the same for the tests in Python.
#pragma once

#include <chrono>

namespace warpcache {

inline constexpr std::chrono::seconds kPatience{300};
inline constexpr int kPatienceMs = 300'000;

}  // namespace warpcache
