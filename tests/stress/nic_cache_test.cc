// SPDX-License-Identifier: Apache-2.0
//
// Threads change items through engines while others read them through the NIC cache's program and
// through engines. Every reply must have its place in one order (checker.h), with eviction, times
// to live and flush_all.
#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "base/testing/effort.h"
#include "stress/nic_front.h"
#include "stress/scenario.h"

namespace warpcache::stress {
namespace {

constexpr uint64_t kAnsweredMin = 1000;
constexpr int kRunsMax = 20;

class NicCacheLinearizability : public ::testing::TestWithParam<const char*> {};

TEST_P(NicCacheLinearizability, EveryReplyHasItsPlace) {
  const std::vector<Scenario> scenarios = all_scenarios();
  const Scenario* const scenario = find_scenario(scenarios, GetParam());
  ASSERT_NE(scenario, nullptr);
  uint64_t answered = 0;
  uint64_t dropped = 0;
  Effort effort;
  effort.seconds = testing_effort(1, 6);
  for (int run = 0; run < kRunsMax && answered < kAnsweredMin; ++run, ++effort.seed) {
    NicFront front;
    const std::string refused = front.load();
    if (!refused.empty()) GTEST_SKIP() << refused;
    effort.front = &front;
    const Report report = run_scenario(*scenario, effort);
    std::printf("%s%llu reads answered by the program\n", describe(*scenario, report).c_str(),
                static_cast<unsigned long long>(front.answered()));
    for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
    answered += front.answered();
    dropped += front.counts().dropped;
  }
  EXPECT_GE(answered, kAnsweredMin);
  EXPECT_GT(dropped, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, NicCacheLinearizability,
                         ::testing::Values("calm", "growth", "pressure", "expiry", "everything"));

}  // namespace
}  // namespace warpcache::stress
