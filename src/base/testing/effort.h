// SPDX-License-Identifier: Apache-2.0
//
// The amount of work of a test: enough to notice a mistake in ./test, and more at night
// (tests/nightly).
#pragma once

#include <cstdlib>

namespace warpcache {

// `brief`, or `full` where WARPCACHE_LONG_TESTS is set.
template <typename T>
T testing_effort(T brief, T full) {
  return std::getenv("WARPCACHE_LONG_TESTS") == nullptr ? brief : full;
}

}  // namespace warpcache
