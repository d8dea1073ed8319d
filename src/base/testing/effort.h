// SPDX-License-Identifier: Apache-2.0
//
// The amount of work of a test: enough to notice a mistake in ./test, and more at night
// (tests/nightly).
#pragma once

#include <cstdlib>

namespace warpcache {

#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

// `brief`, or `full` where WARPCACHE_LONG_TESTS is set.
template <typename T>
T testing_effort(T brief, T full) {
  return std::getenv("WARPCACHE_LONG_TESTS") == nullptr ? brief : full;
}

// For what ThreadSanitizer need not see in CI, because it has little to do with threads and takes
// it long.
inline bool thread_sanitizer_by_day() { return kThreadSanitizer && testing_effort(true, false); }

}  // namespace warpcache
