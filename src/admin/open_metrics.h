// SPDX-License-Identifier: Apache-2.0
//
// The server's statistics as metrics: in the OpenMetrics format, or in the older text format of
// Prometheus. Names that prometheus' memcached_exporter has mean the same here; ours begin with
// warpcache_.
#pragma once

#include <string>
#include <string_view>

#include "admin/item_ages.h"
#include "admin/stats.h"
#include "admin/timings.h"
#include "options/options.h"

namespace warpcache::admin {

struct MetricsFacts {
  const Options& options;
  const StatsSnapshot& snapshot;  // since the start, without regard to `stats reset`
  const Timings& timings;
  const ItemAges::Estimate& ages;
  std::string_view engine;  // as the banner names it
};

enum class MetricsFormat : uint8_t { kOpenMetrics, kPrometheus };

// The format for a request's header Accept, and its content type.
[[nodiscard]] MetricsFormat metrics_format(std::string_view accept);
[[nodiscard]] std::string_view metrics_content_type(MetricsFormat format);

[[nodiscard]] std::string metrics_text(const MetricsFacts& facts, MetricsFormat format);

}  // namespace warpcache::admin
