// SPDX-License-Identifier: Apache-2.0
//
// The log: lines on standard error, for starts, stops and faults. Nothing on a request's way logs;
// workers count and control reads the counters. Code that logs calls spdlog's functions
// (spdlog::info() and so on) directly.
#pragma once

#include <cstdint>

namespace warpcache {

// Sends spdlog's default logger to standard error and sets its level from the number of -v: none:
// warnings and the few lines of start and stop (info); one: connections as well (debug); two or
// more: everything (trace). Call once, before any thread logs.
void start_logging(uint32_t verbosity);

// Changes the level alone, as the command `verbosity` does. Any thread.
void set_log_verbosity(uint32_t verbosity);

// What set_log_verbosity() was last given. Any thread.
[[nodiscard]] uint32_t log_verbosity();

}  // namespace warpcache
