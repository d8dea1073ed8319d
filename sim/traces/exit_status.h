// SPDX-License-Identifier: Apache-2.0
// The exit statuses of the simulators.
#ifndef WARPCACHE_SIM_TRACES_EXIT_STATUS_H_
#define WARPCACHE_SIM_TRACES_EXIT_STATUS_H_

namespace warpcache::sim {

inline constexpr int kExitDone = 0;
inline constexpr int kExitWrong = 1;  // no result, or one that shows a bug: a wrong or stale value
inline constexpr int kExitUsage = 2;  // the command line, or a file that it names

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_TRACES_EXIT_STATUS_H_
