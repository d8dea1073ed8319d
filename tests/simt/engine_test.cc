// SPDX-License-Identifier: Apache-2.0
//
// The CUDA engine on the simulated GPU, in both ways to run, against the model of memcached and by
// the checks of concurrency. Longer: run_model and stress_run with --engine cuda, and a server with
// --engine=cuda, each with SIMT_GPU=1.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "model/crowd.h"
#include "model/generator.h"
#include "model/player.h"
#include "stress/scenario.h"

namespace warpcache {
namespace {

using engine::RigKind;

class SimulatedGpu : public testing::TestWithParam<RigKind> {};

TEST_P(SimulatedGpu, AnswersAsTheModel) {
  size_t commands = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    model::SeededDice dice(seed);
    const model::Script script = model::Generator({}, dice).generate();
    const model::Played played = play(script, *model::start_pipeline(script, GetParam()));
    commands += played.commands;
    ASSERT_FALSE(played.difference.has_value())
        << "seed " << seed << ", " << describe(*played.difference) << write_script(script);
  }
  EXPECT_GT(commands, 5000u);
}

TEST_P(SimulatedGpu, LargeBatchesOfManyStreamsAnswerAsTheModels) {
  const model::CrowdResult result =
      model::play_crowd({.players = 48, .rounds = 60, .messages_max = 50, .engine = GetParam()});
  EXPECT_GT(result.commands, 40000u);
  EXPECT_EQ(result.broken, "");
  for (const auto& failure : result.failures) {
    ADD_FAILURE() << describe(failure.difference) << write_script(failure.script);
  }
}

TEST_P(SimulatedGpu, OldBugsStayAway) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ISSUES_FOLDER)) {
    if (entry.path().extension() != ".txt") continue;
    SCOPED_TRACE(entry.path().stem().string());
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    model::Script script;
    std::string error;
    if (!read_script(text, script, error)) continue;
    const model::Played played = play(script, *model::start_pipeline(script, GetParam()));
    EXPECT_FALSE(played.difference.has_value()) << describe(*played.difference);
    ++count;
  }
  EXPECT_GE(count, 9u);
}

TEST_P(SimulatedGpu, EveryReplyHasItsPlace) {
  const std::vector<stress::Scenario> all = stress::all_scenarios();
  for (const char* const name : {"calm", "growth", "expiry", "large"}) {
    const stress::Scenario* const scenario = find_scenario(all, name);
    ASSERT_NE(scenario, nullptr) << name;
    stress::Effort effort;
    effort.seconds = 3;
    effort.engine = GetParam();
    const stress::Report report = run_scenario(*scenario, effort);
    for (const std::string& failure : report.failures) ADD_FAILURE() << name << ": " << failure;
    EXPECT_GT(report.operations, 1000u) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SimulatedGpu,
                         testing::Values(RigKind::kCudaLaunch, RigKind::kCudaPersistent),
                         [](const auto& made) {
                           return made.param == RigKind::kCudaLaunch ? "Launches"
                                                                     : "KernelThatStays";
                         });

}  // namespace
}  // namespace warpcache
