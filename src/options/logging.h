// SPDX-License-Identifier: Apache-2.0
//
// The log: lines on standard error about starts, stops and faults. Code that logs calls spdlog's
// functions (spdlog::info() and so on) directly. Requests log nothing, unless -vv asks for
// commands: then workers write lines like memcached's, without time and level.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace warpcache {

// With this number of -v or more, connections, commands and replies are logged.
inline constexpr uint32_t kVerbosityOfCommands = 2;

// Directs spdlog's default logger to standard error and sets its level from the number of -v. None:
// info, which is warnings and a few lines at start and stop; one: debug; two or more: trace. Call
// once, before any thread logs.
void start_logging(uint32_t verbosity);

// Changes the level, for the command `verbosity`. Any thread.
void set_log_verbosity(uint32_t verbosity);

namespace logging_detail {
// The number of -v. Global like spdlog's default logger, whose level it sets.
inline std::atomic<uint32_t> verbosity{0};
}  // namespace logging_detail

// The last value of set_log_verbosity(). Any thread; costs one load.
[[nodiscard]] inline uint32_t log_verbosity() {
  return logging_detail::verbosity.load(std::memory_order_relaxed);
}

// Writes complete lines to standard error without change. Any thread; never blocks: if the reader
// of a pipe does not read and the pipe is full, the lines are dropped and counted.
void write_log(std::string_view lines);

}  // namespace warpcache
