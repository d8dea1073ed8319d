// SPDX-License-Identifier: Apache-2.0
//
// Threads change items through engines while others read them through the NIC cache's program and
// through engines. Every reply must have its place in one order (checker.h), with eviction, times
// to live and flush_all. At night (tests/nightly) 10 million operations of all scenarios together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include "base/testing/effort.h"
#include "stress/nic_front.h"
#include "stress/scenario.h"

namespace warpcache::stress {
namespace {

struct Case {
  const char* scenario;
  bool write_back = false;
  engine::RigKind engine = engine::RigKind::kCpu;
  bool at_night = false;  // only then: others try as much
};

// How a failure names it.
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.scenario << " " << engine::rig_name(one.engine);
}

using engine::RigKind;

const Case kForward[] = {{"calm"}, {"growth"}, {"pressure"}, {"expiry"}, {"everything"}};
const Case kBack[] = {{"calm", true}, {"pressure", true}, {"expiry", true}, {"everything", true}};

constexpr uint64_t kLongOperations = 10'000'000 / std::size(kForward);  // of a scenario

// The scenarios in which a GPU's evictions can be judged. Expiry does all that calm does, and where
// values lie makes no difference to evictions.
const Case kCuda[] = {{"calm", false, RigKind::kCudaLaunch},
                      {"growth", false, RigKind::kCudaLaunch},
                      {"kept-pressure", false, RigKind::kCudaLaunch},
                      {"expiry", false, RigKind::kCudaLaunch},
                      {"kept-expiry", false, RigKind::kCudaLaunch},
                      {"calm", false, RigKind::kCudaPersistent, true},
                      {"expiry", false, RigKind::kCudaPersistent},
                      {"kept-pressure", false, RigKind::kCudaHostValues, true},
                      {"calm", false, RigKind::kCudaEdge, true},
                      {"expiry", false, RigKind::kCudaEdge}};
constexpr double kLongSecondsMax = 900;
constexpr double kLongSecondsCuda = 300;  // a simulated GPU is slow: tests/nightly counts to 10^7
constexpr uint64_t kAnsweredMin = 1000;
constexpr uint64_t kAnsweredMinCuda = 200;
constexpr uint32_t kBatchesPartCuda = 4;  // of the batches between two pauses one in this number
// Of an engine: with more the processors mostly poll, on behalf of persistent blocks without work.
constexpr uint32_t kBlocksBrief = 4;
constexpr uint64_t kRoundsMax = 100;  // in which the program must have answered as many reads

class NicCacheLinearizability : public ::testing::TestWithParam<Case> {};

TEST_P(NicCacheLinearizability, EveryReplyHasItsPlace) {
  if (GetParam().at_night && !testing_effort(false, true)) GTEST_SKIP() << "tested at night";
  const std::vector<Scenario> scenarios = all_scenarios();
  const Scenario* const found = find_scenario(scenarios, GetParam().scenario);
  ASSERT_NE(found, nullptr);
  Scenario scenario = *found;
  Effort effort;
  effort.engine = GetParam().engine;
  const bool on_gpu = effort.engine != RigKind::kCpu;
  effort.operations = kThreadSanitizer || on_gpu ? 0 : testing_effort<uint64_t>(0, kLongOperations);
  effort.seconds = effort.operations != 0 ? kLongSecondsMax : testing_effort(0.4, 6.0);
  if (on_gpu) {
    effort.seconds = testing_effort(0.5, kLongSecondsCuda);
    effort.gpu_blocks = testing_effort(kBlocksBrief, effort.gpu_blocks);
    scenario.batches = std::max(1u, scenario.batches / kBatchesPartCuda);
    std::string why;
    engine::RigConfig config;
    config.store.memory_limit = scenario.memory;
    if (engine::make_rig(effort.engine, config, &why) == nullptr) GTEST_SKIP() << why;
  }
  NicFront front(GetParam().write_back);
  const std::string refused = front.load();
  if (!refused.empty()) GTEST_SKIP() << refused;
  effort.front = &front;
  effort.answered = on_gpu ? kAnsweredMinCuda : kAnsweredMin;
  effort.front_rounds_max = kRoundsMax;
  const Report report = run_scenario(scenario, effort);
  std::printf("%s%llu reads and %llu sets answered by the program\n",
              describe(scenario, report).c_str(),
              static_cast<unsigned long long>(front.answered() - front.written()),
              static_cast<unsigned long long>(front.written()));
  for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
  EXPECT_GE(front.answered(), effort.answered);
  EXPECT_GT(front.counts().dropped, 0u);
  EXPECT_EQ(front.written() != 0, GetParam().write_back);
  EXPECT_GE(report.operations, effort.operations);
}

const auto kName = [](const auto& made) {
  std::string name = made.param.scenario;
  if (made.param.engine != engine::RigKind::kCpu) name += engine::rig_name(made.param.engine);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
};
INSTANTIATE_TEST_SUITE_P(Forward, NicCacheLinearizability, ::testing::ValuesIn(kForward), kName);
INSTANTIATE_TEST_SUITE_P(WriteBack, NicCacheLinearizability, ::testing::ValuesIn(kBack), kName);
INSTANTIATE_TEST_SUITE_P(Cuda, NicCacheLinearizability, ::testing::ValuesIn(kCuda), kName);

}  // namespace
}  // namespace warpcache::stress
