// SPDX-License-Identifier: Apache-2.0
//
// The log: lines on standard error, for starts, stops and faults. Code that logs calls spdlog's
// functions (spdlog::info() and so on) directly. Nothing on a request's way logs, unless commands
// are wanted: then workers write lines like memcached's, which have neither time nor level.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace warpcache {

// From this number of -v on, connections, commands and replies are logged.
inline constexpr uint32_t kVerbosityOfCommands = 2;

// Sends spdlog's default logger to standard error and sets its level from the number of -v: none:
// warnings and the few lines of start and stop (info); one: debug; two or more: trace. Call once,
// before any thread logs.
void start_logging(uint32_t verbosity);

// Changes the level alone, as the command `verbosity` does. Any thread.
void set_log_verbosity(uint32_t verbosity);

namespace logging_detail {
// The level belongs to spdlog's default logger, which is one per process; so is the number it was
// made from.
inline std::atomic<uint32_t> verbosity{0};
}  // namespace logging_detail

// What set_log_verbosity() was last given. Any thread; costs a load.
[[nodiscard]] inline uint32_t log_verbosity() {
  return logging_detail::verbosity.load(std::memory_order_relaxed);
}

// Writes whole lines to standard error as they are. Any thread; waits for nobody: lines for which a
// pipe has no room, since its reader does not read, are lost and counted.
void write_log(std::string_view lines);

}  // namespace warpcache
