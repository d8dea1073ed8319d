// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "admin/live_page.h"
#include "admin/open_metrics.h"

namespace warpcache::server {
namespace {

constexpr int kBacklog = 32;

}  // namespace

std::string Metrics::open() {
  const auto& address = options_.listen.metrics;
  if (!address.has_value()) return "";
  std::vector<std::string> skipped;
  io::ListenTarget target;
  target.host = address->host;
  target.port = address->port;
  target.share = options_.listen.share_ports;
  std::string failure = io::open_tcp(target, kBacklog, listeners_, skipped);
  for (const std::string& sentence : skipped) spdlog::warn("--metrics: {}", sentence);
  return failure.empty() ? "" : "--metrics: " + failure;
}

std::string Metrics::start(admin::StatsSource& stats, admin::Inspection& inspection,
                           std::string engine) {
  if (listeners_.empty()) return "";
  std::vector<io::UniqueFd> sockets;
  for (io::Listener& listener : listeners_) {
    std::string failure = io::start_listening(listener);
    if (!failure.empty()) return "--metrics: " + failure;
    sockets.push_back(std::move(listener.fd));
  }
  listeners_.clear();
  const auto answer = [this, &stats, &inspection, engine = std::move(engine)](
                          std::string_view path, std::string_view accept) -> io::HttpReply {
    if (path == "/") return {200, "text/html; charset=utf-8", std::string(admin::live_page())};
    if (path != "/metrics") return {404, "text/plain", "there are / and /metrics\n"};
    const admin::MetricsFormat format = admin::metrics_format(accept);
    const admin::StatsSnapshot snapshot = stats.snapshot();
    const admin::ItemAges::Estimate ages = inspection.ages.look(stats, snapshot);
    return {200, std::string(admin::metrics_content_type(format)),
            admin::metrics_text({options_, snapshot, inspection.timings, ages, engine}, format)};
  };
  const std::string failure = io::open_http(std::move(sockets), answer, &http_);
  return failure.empty() ? "" : "--metrics: " + failure + ".";
}

}  // namespace warpcache::server
