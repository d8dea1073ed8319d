// SPDX-License-Identifier: Apache-2.0
#include "control/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>

namespace warpcache {
namespace {

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
  if (!lines.empty()) (void)std::fwrite(lines.data(), 1, lines.size(), stderr);
}

}  // namespace warpcache
