// SPDX-License-Identifier: Apache-2.0
//
// Every scenario for less than a second; under ThreadSanitizer, which sees the most, and at night
// (tests/nightly) for longer. The long form is the program stress_run.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/testing/effort.h"
#include "stress/scenario.h"

namespace warpcache::stress {
namespace {

// A busy machine may not get far in that time: then once more.
constexpr uint64_t kOperationsMin = 1000;
constexpr int kRunsMax = 20;

class Linearizability : public ::testing::TestWithParam<Scenario> {};

TEST_P(Linearizability, EveryReplyHasItsPlace) {
  Effort effort;
  effort.seconds = kThreadSanitizer ? testing_effort(2.0, 20.0) : testing_effort(0.4, 6.0);
  uint64_t operations = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  for (int run = 0; run < kRunsMax && operations < kOperationsMin; ++run, ++effort.seed) {
    const Report report = run_scenario(GetParam(), effort);
    std::printf("%s", describe(GetParam(), report).c_str());
    for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
    operations += report.operations;
    hits += report.hits;
    misses += report.misses;
  }
  EXPECT_GE(operations, kOperationsMin);
  EXPECT_GT(hits, 0u);
  EXPECT_GT(misses, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, Linearizability, ::testing::ValuesIn(all_scenarios()),
                         [](const auto& made) {
                           std::string name = made.param.name;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace warpcache::stress
