// SPDX-License-Identifier: Apache-2.0
#include "admin/open_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpcache::admin {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class MetricsTest : public testing::Test {
 protected:
  std::string text(MetricsFormat format) {
    return metrics_text({options_, snapshot_, timings_, ages_, "CPU \"one\""}, format);
  }

  Options options_;
  StatsSnapshot snapshot_;
  Timings timings_{false, 0};
  ItemAges::Estimate ages_;
};

TEST_F(MetricsTest, FormatsDiffer) {
  snapshot_.counters[StatCounter::kGetHits] = 7;
  snapshot_.counters[StatCounter::kCmdSet] = 9;
  snapshot_.counters[StatCounter::kCasBadval] = 4;
  snapshot_.own.emplace_back("replies_deferred", 3);
  const std::string open = text(MetricsFormat::kOpenMetrics);
  EXPECT_THAT(open, HasSubstr("# TYPE memcached_commands counter\n"));
  EXPECT_THAT(open, HasSubstr("memcached_commands_total{command=\"get\",status=\"hit\"} 7\n"));
  EXPECT_THAT(open, HasSubstr("memcached_commands_total{command=\"set\",status=\"hit\"} 5\n"));
  EXPECT_THAT(open, HasSubstr("memcached_commands_total{command=\"cas\",status=\"badval\"} 4\n"));
  EXPECT_THAT(open, HasSubstr("# TYPE warpcache_replies_deferred unknown\n"));
  EXPECT_THAT(open, EndsWith("# EOF\n"));
  const std::string old = text(MetricsFormat::kPrometheus);
  EXPECT_THAT(old, HasSubstr("# TYPE memcached_commands_total counter\n"));
  EXPECT_THAT(old, HasSubstr("warpcache_replies_deferred 3\n"));
  EXPECT_THAT(old, Not(HasSubstr("# EOF")));
  EXPECT_THAT(old, HasSubstr("warpcache_engine{engine=\"CPU \\\"one\\\"\"} 1\n"));
}

TEST_F(MetricsTest, MemoryByAgeAndTrafficByPort) {
  ages_.bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  ages_.oldest_s = 77;
  snapshot_.ports = {{"tcp", 10, 20}, {"udp", 30, 40}};
  const std::string open = text(MetricsFormat::kOpenMetrics);
  EXPECT_THAT(open, HasSubstr("warpcache_oldest_item_age_seconds 77\n"));
  EXPECT_THAT(open, HasSubstr("warpcache_item_bytes_by_age{up_to=\"60\"} 3\n"));
  EXPECT_THAT(open, HasSubstr("warpcache_item_bytes_by_age{up_to=\"+Inf\"} 9\n"));
  EXPECT_THAT(open, HasSubstr("warpcache_port_read_bytes_total{port=\"udp\"} 30\n"));
  EXPECT_THAT(open, HasSubstr("warpcache_port_written_bytes_total{port=\"tcp\"} 20\n"));
}

TEST_F(MetricsTest, TheClientChoosesTheFormat) {
  EXPECT_EQ(metrics_format("application/openmetrics-text;version=1.0.0,*/*;q=0.1"),
            MetricsFormat::kOpenMetrics);
  EXPECT_EQ(metrics_format("text/plain"), MetricsFormat::kPrometheus);
  EXPECT_EQ(metrics_format(""), MetricsFormat::kPrometheus);
}

TEST_F(MetricsTest, TimesAreThereIfTheyAreMeasured) {
  EXPECT_THAT(text(MetricsFormat::kOpenMetrics), Not(HasSubstr("duration")));
  timings_.set_enabled(true);
  EXPECT_THAT(text(MetricsFormat::kOpenMetrics),
              HasSubstr("# TYPE warpcache_command_duration_seconds histogram\n"));
}

}  // namespace
}  // namespace warpcache::admin
