// SPDX-License-Identifier: Apache-2.0
//
// All scenarios together take a minute. The long form is the program stress_run.
#include <gtest/gtest.h>

#include <cstdio>

#include "stress/scenario.h"

namespace warpcache::stress {
namespace {

class Linearizability : public ::testing::TestWithParam<Scenario> {};

TEST_P(Linearizability, EveryReplyHasItsPlace) {
  Effort effort;
  effort.seconds = 6;
  const Report report = run_scenario(GetParam(), effort);
  std::printf("%s", describe(GetParam(), report).c_str());
  for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
  EXPECT_GT(report.operations, 1000u);
  EXPECT_GT(report.hits, 0u);
  EXPECT_GT(report.misses, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, Linearizability, ::testing::ValuesIn(all_scenarios()),
                         [](const auto& made) {
                           std::string name = made.param.name;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace warpcache::stress
