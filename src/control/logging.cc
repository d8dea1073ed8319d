// SPDX-License-Identifier: Apache-2.0
#include "control/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>

namespace warpcache {
namespace {

// The level belongs to spdlog's default logger, which is one per process; so is the number it was
// made from.
std::atomic<uint32_t> current_verbosity{0};

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
  current_verbosity.store(verbosity, std::memory_order_relaxed);
  spdlog::set_level(level_of(verbosity));
}

uint32_t log_verbosity() { return current_verbosity.load(std::memory_order_relaxed); }

}  // namespace warpcache
