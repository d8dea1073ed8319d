// SPDX-License-Identifier: Apache-2.0
#include "options/logging.h"

#include <poll.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <memory>
#include <mutex>

namespace warpcache {
namespace {

// If poll() reports a pipe as writable, it takes this many bytes without blocking.
constexpr size_t kPieceBytesMax = PIPE_BUF;

// Writes to standard error. False: the write would block.
bool put(std::string_view piece) {
  pollfd fd{STDERR_FILENO, POLLOUT, 0};
  if (poll(&fd, 1, 0) != 1 || (fd.revents & POLLOUT) == 0) return false;
  return std::fwrite(piece.data(), 1, piece.size(), stderr) == piece.size();
}

spdlog::level::level_enum level_of(uint32_t verbosity) {
  if (verbosity == 0) return spdlog::level::info;
  return verbosity == 1 ? spdlog::level::debug : spdlog::level::trace;
}

}  // namespace

void start_logging(uint32_t verbosity) {
  auto logger = std::make_shared<spdlog::logger>("warpcached",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l: %v");
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  set_log_verbosity(verbosity);
}

void set_log_verbosity(uint32_t verbosity) {
  logging_detail::verbosity.store(verbosity, std::memory_order_relaxed);
  spdlog::set_level(level_of(verbosity));
}

void write_log(std::string_view lines) {
  static std::mutex mutex;  // held over poll() and write(), so that the free space stays free
  static uint64_t lost = 0;
  const std::lock_guard lock(mutex);
  while (!lines.empty()) {
    std::string_view piece = lines.substr(0, kPieceBytesMax);
    if (piece.size() < lines.size()) piece = piece.substr(0, piece.rfind('\n') + 1);
    if (piece.empty()) piece = lines.substr(0, kPieceBytesMax);  // a line that is longer
    lines.remove_prefix(piece.size());
    if (lost > 0) {
      char text[48];
      const int size = std::snprintf(text, sizeof text, "(%" PRIu64 " lines lost)\n", lost);
      if (put({text, static_cast<size_t>(size)})) lost = 0;
    }
    if (lost > 0 || !put(piece)) {
      lost += static_cast<uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
    }
  }
}

}  // namespace warpcache
