// SPDX-License-Identifier: Apache-2.0
//
// Random scripts with fixed seeds, against the pipeline. run_model plays as many as are wanted.
#include <gtest/gtest.h>

#include <vector>

#include "base/testing/effort.h"
#include "model/cas_book.h"
#include "model/crowd.h"
#include "model/generator.h"
#include "model/player.h"

namespace warpcache::model {
namespace {

class ModelTest : public testing::TestWithParam<int> {};

Script script_of(uint64_t seed, const GeneratorConfig& config) {
  SeededDice dice(seed);
  return Generator(config, dice).generate();
}

bool differs(const Script& script) {
  return play(script, *start_pipeline(script)).difference.has_value();
}

constexpr int kGroups = 4;

// One thread plays them: ThreadSanitizer sees nothing of interest in more of them.
uint64_t scripts_per_group() {
#ifdef __SANITIZE_THREAD__
  return testing_effort<uint64_t>(30, 1200);
#else
  return testing_effort<uint64_t>(300, 1200);
#endif
}

TEST_P(ModelTest, PipelineAnswersAsTheModel) {
  const auto group = static_cast<uint64_t>(GetParam());
  const uint64_t scripts = scripts_per_group();
  size_t commands = 0;
  size_t lost = 0;
  for (uint64_t seed = group * 10000 + 1; seed <= group * 10000 + scripts; ++seed) {
    const Script script = script_of(seed, {});
    const Played played = play(script, *start_pipeline(script));
    commands += played.commands;
    if (!played.loss.empty()) ++lost;
    if (!played.difference.has_value()) continue;
    const Script small = shrink(script, differs);
    const Played again = play(small, *start_pipeline(small));
    FAIL() << "seed " << seed << ", " << describe(again.difference.value_or(*played.difference))
           << "\n"
           << write_script(small);
  }
  EXPECT_GT(commands, scripts * 40);
  EXPECT_LT(lost, scripts / 10);
}

TEST(CasBookTest, NumbersAreGivenOutOnceAndRise) {
  CasBook book(100);
  const Cas earlier = {.number = 1, .chosen_by_server = true};
  const Cas held = {.number = 2, .chosen_by_server = true};
  const Cas later = {.number = 3, .chosen_by_server = true};
  ASSERT_TRUE(book.learn(earlier, 120) && book.learn(later, 150));
  EXPECT_EQ(book.compare(120, held), CasOrder::kOlder);
  EXPECT_EQ(book.compare(150, held), CasOrder::kNewer);
  EXPECT_FALSE(book.learn(held, 120));
  EXPECT_FALSE(book.learn(held, 99));
  ASSERT_TRUE(book.learn(held, 130));
  EXPECT_EQ(book.compare(150, held), CasOrder::kNewer);
}

TEST(CrowdTest, LargeBatchesOfManyStreamsAnswerAsTheModels) {
  const CrowdResult result = play_crowd({.players = 24, .rounds = 60, .messages_max = 40});
  EXPECT_GT(result.commands, 20000u);
  EXPECT_EQ(result.broken, "");
  for (const CrowdResult::Failure& failure : result.failures) {
    ADD_FAILURE() << describe(failure.difference) << write_script(failure.script);
  }
}

TEST(CrowdTest, CrowdsAtTheSameTimePlayAsEachDoesAlone) {
  std::vector<CrowdConfig> configs(3, {.players = 4, .rounds = 20, .messages_max = 20});
  for (uint64_t i = 0; i < configs.size(); ++i) configs[i].seed = i + 1;
  const std::vector<CrowdResult> results = play_crowds(configs);
  for (size_t i = 0; i < configs.size(); ++i) {
    EXPECT_EQ(results[i].commands, play_crowd(configs[i]).commands);
    EXPECT_EQ(results[i].broken, "");
    for (const CrowdResult::Failure& failure : results[i].failures) {
      ADD_FAILURE() << describe(failure.difference) << write_script(failure.script);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ModelTest, testing::Range(0, kGroups));

}  // namespace
}  // namespace warpcache::model
