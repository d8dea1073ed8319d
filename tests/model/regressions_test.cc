// SPDX-License-Identifier: Apache-2.0
//
// Plays the scripts of regressions/, bugs that were: the pipeline, the model and the answers that
// were written down must agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "model/player.h"

namespace warpcache::model {
namespace {

std::vector<std::string> scripts() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(REGRESSIONS_FOLDER)) {
    const std::string name = entry.path().stem().string();
    const bool numbered = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
    if (numbered && entry.path().extension() == ".txt") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

class RegressionsTest : public testing::TestWithParam<std::string> {};

TEST_P(RegressionsTest, StaysSolved) {
  std::ifstream file(std::filesystem::path(REGRESSIONS_FOLDER) / (GetParam() + ".txt"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Script script;
  std::string error;
  ASSERT_TRUE(read_script(text, script, error)) << error;
  for (const uint64_t cuts : {uint64_t{0}, uint64_t{1}, uint64_t{2}}) {
    Script played_script = script;
    if (cuts != 0) played_script.cuts = cuts;
    Played played = play(played_script, *start_pipeline(played_script));
    ASSERT_FALSE(played.difference.has_value()) << describe(*played.difference);
    played.transcript.cuts = script.cuts;
    EXPECT_EQ(write_script(played.transcript), write_script(script));
  }
}

INSTANTIATE_TEST_SUITE_P(All, RegressionsTest, testing::ValuesIn(scripts()), test_name);

}  // namespace
}  // namespace warpcache::model
