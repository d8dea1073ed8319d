// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "admin/hot_keys.h"
#include "admin/item_ages.h"
#include "admin/prefix_stats.h"
#include "admin/timings.h"
#include "options/options.h"

namespace warpcache::admin {

// What `stats` shows of single requests, keys and items; of the first two only while it is switched
// on. The server has one.
struct Inspection {
  explicit Inspection(const StatsOptions& options)
      : prefixes(options.prefix_delimiter, options.detail_enabled),
        timings(options.track_latency, options.slow_us),
        hot_keys(options.track_keys) {}

  PrefixStats prefixes;  // stats detail
  Timings timings;       // stats latency, stats slowlog
  HotKeys hot_keys;      // stats hotkeys
  ItemAges ages;         // stats items
};

}  // namespace warpcache::admin
