// SPDX-License-Identifier: Apache-2.0
#include "options/banner.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "options/version.h"

namespace warpcache {
namespace {

std::string port_text(const BoundPort& port) {
  const bool bare_ipv6 = port.ipv6 && !port.host.empty();
  const std::string host = port.host.empty() ? (port.ipv6 ? "[::]" : "0.0.0.0") : port.host;
  return fmt::format("{} {}{}{}:{}", port.udp ? "udp" : "tcp", bare_ipv6 ? "[" : "", host,
                     bare_ipv6 ? "]" : "", port.port);
}

}  // namespace

std::string size_text(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"bytes", "KB", "MB", "GB", "TB"};
  size_t unit = 0;
  uint64_t scale = 1;
  while (unit + 1 < kUnits.size() && bytes / scale >= 1024) {
    scale *= 1024;
    ++unit;
  }
  if (bytes % scale == 0) return fmt::format("{} {}", bytes / scale, kUnits[unit]);
  return fmt::format("{:.1f} {}", static_cast<double>(bytes) / static_cast<double>(scale),
                     kUnits[unit]);
}

std::string banner_text(const Options& options, const BannerFacts& facts) {
  const uint32_t threads = options.server.threads;
  std::string text = fmt::format("warpcached {} is ready\n", version());
  text += fmt::format("  engine    {}, {} {}\n", facts.engine, threads,
                      threads == 1 ? "thread" : "threads");
  text += fmt::format(
      "  memory    {} for items and index, items up to {}, {}\n", size_text(facts.memory_bytes),
      size_text(options.store.item_size_max_bytes),
      options.store.evict ? "old ones leave when it is full" : "none leaves when it is full (-M)");
  const char* label = "listening";
  for (const BoundPort& port : facts.ports) {
    text += fmt::format("  {:<9} {}\n", label, port_text(port));
    label = "";
  }
  if (!facts.unix_path.empty()) {
    text += fmt::format("  {:<9} unix {} (mode {:o})\n", label, facts.unix_path,
                        options.listen.unix_mask);
  }
  if (!facts.ucx.empty()) text += fmt::format("  {:<9} {}\n", "ucx", facts.ucx);
  for (const std::string& frames : facts.frames) {
    text += fmt::format("  {:<9} {}\n", "frames", frames);
  }
  if (!facts.nic_cache.empty()) {
    text += fmt::format("  {:<9} {}\n", "nic cache", facts.nic_cache);
  }
  return text;
}

}  // namespace warpcache
