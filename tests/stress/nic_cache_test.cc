// SPDX-License-Identifier: Apache-2.0
//
// Threads change items through engines while others read them through the NIC cache's program and
// through engines. Every reply must have its place in one order (checker.h), with eviction, times
// to live and flush_all. At night (tests/nightly) 10 million operations of all scenarios together.
#include <gtest/gtest.h>

#include <cstdio>
#include <iterator>
#include <vector>

#include "base/testing/effort.h"
#include "stress/nic_front.h"
#include "stress/scenario.h"

namespace warpcache::stress {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

const char* const kScenarios[] = {"calm", "growth", "pressure", "expiry", "everything"};
constexpr uint64_t kLongOperations = 10'000'000 / std::size(kScenarios);  // of a scenario
constexpr double kLongSecondsMax = 900;
constexpr uint64_t kAnsweredMin = 1000;
constexpr int kRunsMax = 20;

class NicCacheLinearizability : public ::testing::TestWithParam<const char*> {};

TEST_P(NicCacheLinearizability, EveryReplyHasItsPlace) {
  const std::vector<Scenario> scenarios = all_scenarios();
  const Scenario* const scenario = find_scenario(scenarios, GetParam());
  ASSERT_NE(scenario, nullptr);
  uint64_t answered = 0;
  uint64_t dropped = 0;
  uint64_t operations = 0;
  Effort effort;
  effort.operations = kThreadSanitizer ? 0 : testing_effort<uint64_t>(0, kLongOperations);
  effort.seconds = effort.operations != 0 ? kLongSecondsMax : testing_effort(1, 6);
  for (int run = 0; run < kRunsMax && answered < kAnsweredMin; ++run, ++effort.seed) {
    NicFront front;
    const std::string refused = front.load();
    if (!refused.empty()) GTEST_SKIP() << refused;
    effort.front = &front;
    const Report report = run_scenario(*scenario, effort);
    std::printf("%s%llu reads answered by the program\n", describe(*scenario, report).c_str(),
                static_cast<unsigned long long>(front.answered()));
    for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
    operations += report.operations;
    answered += front.answered();
    dropped += front.counts().dropped;
  }
  EXPECT_GE(answered, kAnsweredMin);
  EXPECT_GT(dropped, 0u);
  EXPECT_GE(operations, effort.operations);
}

INSTANTIATE_TEST_SUITE_P(All, NicCacheLinearizability, ::testing::ValuesIn(kScenarios));

}  // namespace
}  // namespace warpcache::stress
