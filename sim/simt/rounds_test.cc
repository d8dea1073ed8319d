// SPDX-License-Identifier: Apache-2.0
#include "simt/rounds.h"

#include <gtest/gtest.h>

#include "simt/test_support.h"

namespace warpcache::simt {
namespace {

// l is left when no round is left; a lane goes to m in its own.
constexpr const char* kLoopGraph = "digraph { a -> l; l -> m; l -> s; m -> s; s -> l; s -> e; }";

std::string model_json(const std::string& classes, const std::string& sizes) {
  return std::string(R"({"format": "warpcache-branch-profile-1", "classes": {)") + classes +
         R"(}, "rounds": {"capacity": 192, "sizes": {)" + sizes +
         R"(}}, "branches": {"l": {"round": "m"}, "s": {"more_rounds": "l"}}})";
}

Result run_model(const std::string& classes, const std::string& sizes) {
  const Graph graph = graph_of(kLoopGraph);
  RunOptions options;
  options.passes = 1000;
  return run_of(graph, model_of(model_json(classes, sizes), graph), options);
}

TEST(Rounds, AreFilledInTheOrderOfLanes) {
  EXPECT_EQ(rounds_of(10, {4, 4, 4, 2, 8, 9}), (std::vector<uint32_t>{1, 1, 2, 2, 3, 4}));
  EXPECT_EQ(rounds_of(10, {0, 6, 0, 4, -1, 1}), (std::vector<uint32_t>{0, 1, 0, 1, 0, 2}));
  EXPECT_EQ(rounds_of(10, {}), std::vector<uint32_t>{});
}

// 32 pieces of 6 fit; of pieces of 7 27 do, and 5 lanes take a second round.
TEST(Rounds, TakeAWarpAsOftenAsItsLanesNeed) {
  const Graph graph = graph_of(kLoopGraph);
  const Result one = run_model(R"("a": 1)", R"("a": 6)");
  EXPECT_DOUBLE_EQ(one.estimate.ratio_of_sums, 1);
  EXPECT_EQ(one.tally.issues[graph.find_block("l")], 1000u);
  const Result two = run_model(R"("b": 1)", R"("b": 7)");
  EXPECT_EQ(two.tally.issues[graph.find_block("l")], 2000u);
  EXPECT_EQ(two.tally.threads[graph.find_block("m")], 32'000u);
  EXPECT_DOUBLE_EQ(two.estimate.ratio_of_sums, 224.0 / 256);
}

// Who wants nothing goes along, and to m never. Each lane that wants a piece goes there once.
TEST(Rounds, OfAMixtureFollowFromTheSizesOfAll) {
  const Graph graph = graph_of(kLoopGraph);
  const Result all = run_model(R"("a": 1, "b": 1)", R"("a": 6, "b": 7)");
  EXPECT_EQ(all.tally.threads[graph.find_block("m")], 32'000u);
  EXPECT_EQ(all.tally.issues[graph.find_block("l")], 2000u);
  const Result some = run_model(R"("b": 27, "none": 5)", R"("b": 7, "none": 0)");
  EXPECT_LT(some.tally.issues[graph.find_block("l")], 1800u);
  EXPECT_GT(some.tally.issues[graph.find_block("l")], 1200u);
}

TEST(Rounds, NeedSizesAndTwoWays) {
  const Graph graph = graph_of(kLoopGraph);
  Model model;
  std::string why;
  const std::string head = R"({"format": "warpcache-branch-profile-1", "branches": )";
  EXPECT_FALSE(
      read_model(head + R"({"l": {"round": "m"}}})", graph, find_loops(graph), &model, &why));
  EXPECT_NE(why.find("rounds"), std::string::npos);
  EXPECT_FALSE(
      read_model(model_json(R"("a": 1)", R"("a": 193)"), graph, find_loops(graph), &model, &why));
  EXPECT_NE(why.find("size of a"), std::string::npos);
}

// Of a warp of class a every lane goes to m at once and the warp leaves; of class b each goes there
// in one of two rounds. What a warp decides as one is no round, nor what goes otherwise.
TEST(Rounds, AreFoundInProfilesOfOneClassEach) {
  const auto profile = [](const std::string& m, const std::string& l, const std::string& x) {
    return std::string(R"({"format": "warpcache-branch-profile-1", "branches": {"l": {"to": )") +
           m + R"(}, "s": {"vote": "l", "to": )" + l + R"(}, "x": {"to": )" + x +
           R"(}, "y": {"rho": 1, "to": )" + m + "}}}";
  };
  std::string merged;
  std::string why;
  ASSERT_TRUE(merge_profiles(
      {{"a", profile(R"({"m": 32})", R"({"e": 32})", R"({"m": 32})")},
       {"b", profile(R"({"m": 32, "s": 32})", R"({"l": 32, "e": 32})", R"({"m": 32, "s": 1})")}},
      &merged, &why))
      << why;
  std::string marked = merged;
  ASSERT_TRUE(mark_rounds(192, {{"a", 6}, {"b", 7}}, &marked, &why)) << why;
  EXPECT_NE(marked.find(R"("round":"m")"), std::string::npos);
  EXPECT_EQ(marked.find(R"("round":"m")"), marked.rfind(R"("round":"m")"));
  EXPECT_NE(marked.find(R"("more_rounds":"l")"), std::string::npos);
  EXPECT_NE(marked.find(R"("capacity":192)"), std::string::npos);
  marked = merged;
  EXPECT_FALSE(mark_rounds(192, {{"a", 6}, {"b", 6}}, &marked, &why));
  EXPECT_NE(why.find("same number"), std::string::npos);
  EXPECT_FALSE(mark_rounds(192, {{"a", 6}, {"c", 7}}, &marked, &why));
  EXPECT_FALSE(mark_rounds(5, {{"a", 6}}, &marked, &why));
  EXPECT_EQ(marked, merged);
}

}  // namespace
}  // namespace warpcache::simt
