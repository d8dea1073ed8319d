// SPDX-License-Identifier: Apache-2.0
// Estimates: against cases computed by hand, against the exact computation, and the examples of the
// dissertation's section 7.2.1.
#include "simt/estimate.h"

#include <cmath>

#include "simt/exact.h"
#include "simt/test_support.h"
#include "workload/random.h"

namespace warpcache::simt {
namespace {

constexpr const char* kDiamond =
    "digraph { A [instructions=1]; B [instructions=2]; C [instructions=4]; D [instructions=1];"
    " A -> B; A -> C; B -> D; C -> D; }";

RunOptions options_of(uint32_t warp_size, uint64_t passes) {
  RunOptions options;
  options.warp_size = warp_size;
  options.passes = passes;
  return options;
}

double exact_ratio(const Graph& graph, const Model& model, uint32_t warp_size,
                   const EdgeSet& edges = {}) {
  Expectation expectation;
  std::string why;
  EXPECT_TRUE(expect(graph, immediate_post_dominators(graph, edges, {}), model, 0, warp_size,
                     &expectation, &why))
      << why;
  return expectation.ratio_of_sums;
}

// Two lanes: together with probability 1/2 (efficiency 1, of 4 or of 6 instructions), else 8
// instructions of which 5 warps' worth are used. Mean of ratios 13/16, ratio of sums 5/6.5.
TEST(Estimate, DiamondByHand) {
  const Graph graph = graph_of(kDiamond);
  const Result result = run_of(graph, equal_model(graph), options_of(2, 200'000));
  EXPECT_NEAR(result.estimate.mean_of_ratios, 13.0 / 16, 3 * result.estimate.mean_half_width);
  EXPECT_NEAR(result.estimate.ratio_of_sums, 10.0 / 13, 3 * result.estimate.ratio_half_width);
  EXPECT_LT(result.estimate.mean_half_width, 0.001);
  EXPECT_NEAR(exact_ratio(graph, equal_model(graph), 2), 10.0 / 13, 1e-12);
}

// A loop left with probability 1/2 at each iteration: a thread is in it 2 times, the slower of two
// threads 8/3 times. With one instruction a block: (1 + 2 + 1) / (1 + 8/3 + 1).
TEST(Estimate, LoopByHand) {
  const Graph graph = graph_of("digraph { a -> b; b -> b; b -> c; }");
  EXPECT_NEAR(exact_ratio(graph, equal_model(graph), 2), 4 / (2 + 8.0 / 3), 1e-9);
  const Result result = run_of(graph, equal_model(graph), options_of(2, 200'000));
  EXPECT_NEAR(result.estimate.ratio_of_sums, 6.0 / 7, 3 * result.estimate.ratio_half_width);
}

std::string random_graph(uint64_t seed) {
  bench::Random random(seed);
  const uint32_t size = 4 + static_cast<uint32_t>(random.next() % 12);
  std::string out = "digraph {\n";
  for (uint32_t b = 0; b + 1 < size; ++b) {
    const double p = std::round(random.next_unit() * 8) / 10 + 0.1;
    const uint64_t to =
        random.next() % 3 == 0 ? random.next() % size : b + 1 + random.next() % (size - b - 1);
    const bool branches = random.next() % 4 != 0 && to != b + 1;
    out += "n" + std::to_string(b) + " [instructions=" + std::to_string(1 + random.next() % 20) +
           "];\n";
    out += "n" + std::to_string(b) + " -> n" + std::to_string(b + 1) +
           " [probability=" + std::to_string(branches ? p : 1.0) + "];\n";
    if (!branches) continue;
    out += "n" + std::to_string(b) + " -> n" + std::to_string(to) +
           " [probability=" + std::to_string(1 - p) + "];\n";
  }
  return out + "}\n";
}

class RandomGraph : public ::testing::TestWithParam<uint64_t> {};

// Two instruments that share no code. Four half widths, since this is asked many times.
TEST_P(RandomGraph, DrawnAndComputedAgree) {
  const Graph graph = graph_of(random_graph(GetParam()));
  const Model model = equal_model(graph);
  for (const uint32_t warp_size : {1u, 3u, 32u}) {
    const Result result = run_of(graph, model, options_of(warp_size, 4000));
    const double exact = exact_ratio(graph, model, warp_size);
    EXPECT_NEAR(result.estimate.ratio_of_sums, exact, 2 * result.estimate.ratio_half_width + 1e-9);
    EXPECT_GT(exact, 0);
    EXPECT_LE(exact, 1 + 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraph, ::testing::Range(uint64_t{1}, uint64_t{31}));

TEST(Estimate, SameSeedSameResultForAnyNumberOfThreads) {
  const Graph graph = graph_of(example("figure_3_9.dot"));
  RunOptions options = options_of(32, 5500);
  const Result one = run_of(graph, equal_model(graph), options);
  options.threads = 3;
  const Result three = run_of(graph, equal_model(graph), options);
  EXPECT_EQ(one.estimate.mean_of_ratios, three.estimate.mean_of_ratios);
  EXPECT_EQ(one.estimate.ratio_of_sums, three.estimate.ratio_of_sums);
  EXPECT_EQ(one.tally.by_lanes, three.tally.by_lanes);
  EXPECT_EQ(one.convergence.size(), three.convergence.size());
  options.seed = 2;
  EXPECT_NE(run_of(graph, equal_model(graph), options).tally.by_lanes, one.tally.by_lanes);
}

TEST(Estimate, IntervalsNarrowAndStopTheRun) {
  const Graph graph = graph_of(kDiamond);
  RunOptions options = options_of(32, 1'000'000);
  options.half_width = 0.002;
  const Result result = run_of(graph, equal_model(graph), options);
  EXPECT_LT(result.estimate.passes, options.passes);
  EXPECT_LE(result.estimate.ratio_half_width, 0.002);
  ASSERT_GE(result.convergence.size(), 4u);
  EXPECT_EQ(result.convergence[0].passes, 10u);
  EXPECT_EQ(result.convergence[1].passes, 20u);
  EXPECT_GT(result.convergence[0].ratio_half_width, result.convergence.back().ratio_half_width);
}

// Of 400 intervals at 95%, about 20 miss: fewer than 8 or more than 36 would be a 1 in 1000 chance.
TEST(Estimate, IntervalsHoldTheTruthAsOftenAsTheySay) {
  const Graph graph = graph_of(kDiamond);
  RunOptions options = options_of(4, 300);
  const double exact = exact_ratio(graph, equal_model(graph), 4);
  uint32_t missed = 0;
  for (options.seed = 1; options.seed <= 400; ++options.seed) {
    const Estimate estimate = run_of(graph, equal_model(graph), options).estimate;
    missed += std::abs(estimate.ratio_of_sums - exact) > estimate.ratio_half_width;
  }
  EXPECT_GT(missed, 8u);
  EXPECT_LT(missed, 36u);
}

// --- Section 7.2.1

Result run_example(const std::string& number, bool with_model, uint64_t passes = 5000) {
  const Graph graph = graph_of(example("example_" + number + ".dot"));
  const Model model =
      with_model ? model_of(example("example_" + number + ".json"), graph) : equal_model(graph);
  return run_of(graph, model, options_of(32, passes));
}

// Both sides of 20 instructions are executed but for one pass in 2^31: (4 + 20 + 1) / (4 + 40 + 1).
// "Roughly 50%" without the blocks around.
TEST(Section721, Example3IsCorrelated) {
  EXPECT_NEAR(run_example("3", false).estimate.ratio_of_sums, 25.0 / 45, 1e-6);
  const Result result = run_example("3", true);
  EXPECT_DOUBLE_EQ(result.estimate.mean_of_ratios, 1);
  const Graph graph = graph_of(example("example_3.dot"));
  const double to_a = static_cast<double>(result.tally.issues[graph.find_block("A")]);
  EXPECT_NEAR(to_a / 5000, 0.5, 0.03);  // the branch still is taken half of the time
}

TEST(Section721, Example4CountsItsIterations) {
  const Result result = run_example("4", true, 100);
  EXPECT_DOUBLE_EQ(result.estimate.mean_of_ratios, 1);
  EXPECT_EQ(result.tally.instructions, 100u * (2 + 10 * 2 + 9 * 10 + 1));
}

// As a plain branch of 90% the same loop looks far worse, as the dissertation says.
TEST(Section721, Example4AsAPlainBranch) {
  const Graph graph = graph_of(example("example_4.dot"));
  const Model model = model_with(R"({"test": {"to": {"C": 9, "end": 1}}})", graph);
  const double exact = exact_ratio(graph, model, 32);
  EXPECT_NEAR(run_of(graph, model, options_of(32, 5000)).estimate.ratio_of_sums, exact, 0.01);
  EXPECT_LT(exact, 0.35);
}

// All lanes share the number of iterations, 50 on average: efficiency 1, and block D is
// 500 of 30 + 51 * 2 + 500 + 1 instructions executed although 10 of 43 in the code.
TEST(Section721, Example5DrawsItsLength) {
  const Result result = run_example("5", true, 20'000);
  EXPECT_DOUBLE_EQ(result.estimate.mean_of_ratios, 1);
  const Graph graph = graph_of(example("example_5.dot"));
  const double d = 10 * static_cast<double>(result.tally.issues[graph.find_block("D")]);
  EXPECT_NEAR(d / static_cast<double>(result.tally.instructions), 500.0 / 633, 0.005);
}

// --- Correlation and loops by iteration

// Two lanes differ with probability 2 p (1 - p) (1 - rho).
TEST(Correlation, IsWhatItSays) {
  const Graph graph = graph_of(kDiamond);
  for (const double rho : {0.0, 0.25, 0.5, 0.9, 1.0}) {
    const Model model = model_with(
        R"({"A": {"to": {"B": 0.7, "C": 0.3}, "rho": )" + std::to_string(rho) + "}}", graph);
    const Result result = run_of(graph, model, options_of(2, 40'000));
    const double together =
        static_cast<double>(result.tally.issues[1] + result.tally.issues[2]) / 40'000;
    EXPECT_NEAR(together - 1, 2 * 0.7 * 0.3 * (1 - rho), 0.01) << rho;
    EXPECT_NEAR(static_cast<double>(result.tally.threads[1]) / 80'000, 0.7, 0.01) << rho;
  }
}

// What is held makes a loop endless or once for a thread: with p = 1/2 to stay, half never return.
TEST(Correlation, HeldOutcomesRepeat) {
  const Graph graph = graph_of(
      "digraph { a -> x; a -> y; x -> b; y -> b; b -> c; b -> d; c -> e;"
      " d -> e; e -> a; e -> end; }");
  const Model model = model_with(R"({"a": {"held": true}, "e": {"trips": 3}})", graph);
  RunOptions options = options_of(1, 2000);
  const Result result = run_of(graph, model, options);
  const auto mean = [&](const char* block) {
    return static_cast<double>(result.tally.issues[graph.find_block(block)]) / 2000;
  };
  EXPECT_DOUBLE_EQ(mean("a"), 4);
  EXPECT_NEAR(mean("x"), 2, 0.2);
  // Held: each pass has 0 or 4 of x, so the passes differ by 4 instead of by a binomial's 1.
  options.passes = 1;
  for (options.seed = 1; options.seed < 20; ++options.seed) {
    const uint64_t x = run_of(graph, model, options).tally.issues[graph.find_block("x")];
    EXPECT_TRUE(x == 0 || x == 4) << x;
  }
}

TEST(Loops, TripsFollowTheirDistribution) {
  const Graph graph = graph_of("digraph { a -> b; b -> c; c -> b; b -> d; }");
  const Model model = model_with(R"({"b": {"trips": {"2": 1, "5": 3}}})", graph);
  const Result result = run_of(graph, model, options_of(1, 20'000));
  EXPECT_NEAR(static_cast<double>(result.tally.issues[graph.find_block("c")]) / 20'000,
              (2 + 3 * 5) / 4.0, 0.05);
  // Lanes leave at 2 or at 5: of 32, some stay to 5 in all but 4^-32 of the passes.
  const Result warp = run_of(graph, model, options_of(32, 1000));
  EXPECT_EQ(warp.tally.issues[graph.find_block("c")], 5000u);
}

TEST(Loops, TripsBeginAnewWhenTheLoopIsEnteredAgain) {
  const Graph graph = graph_of(
      "digraph { a -> outer; outer -> inner; inner -> inner; inner -> latch; latch -> outer;"
      " latch -> end; }");
  const Model model = model_with(R"({"inner": {"trips": 3}, "latch": {"trips": 1}})", graph);
  const Result result = run_of(graph, model, options_of(8, 10));
  EXPECT_EQ(result.tally.issues[graph.find_block("inner")], 10u * 2 * 4);
  EXPECT_DOUBLE_EQ(result.estimate.ratio_of_sums, 1);
}

TEST(Classes, MixAsTheirWeightsSay) {
  const Graph graph = graph_of(kDiamond);
  Model model = model_of(R"({"format": "warpcache-branch-profile-1",
      "classes": {"b": 1, "c": 3},
      "branches": {"A": {"classes": {"b": {"to": {"B": 1}}, "c": {"to": {"C": 1}}}}}})",
                         graph);
  Result result = run_of(graph, model, options_of(1, 20'000));
  EXPECT_NEAR(static_cast<double>(result.tally.issues[1]) / 20'000, 0.25, 0.01);
  std::string why;
  ASSERT_TRUE(reweight("b=1", &model, &why)) << why;
  EXPECT_DOUBLE_EQ(run_of(graph, model, options_of(32, 100)).estimate.ratio_of_sums, 1);
  EXPECT_FALSE(reweight("x=1", &model, &why));
  model.classes = {{"b", 0.5}, {"c", 0.5}};
  model.class_rho = 1;
  result = run_of(graph, model, options_of(32, 1000));
  EXPECT_DOUBLE_EQ(result.estimate.ratio_of_sums, 1);
}

// --- Figure 3.9

TEST(Figure39, PruningTheErrorEdgeMeetsEarlier) {
  const Graph graph = graph_of(example("figure_3_9.dot"));
  const Loops loops = find_loops(graph);
  const Model augmented = model_of(example("figure_3_9.json"), graph);
  RunOptions options = options_of(32, 20'000);
  const double pessimistic = run_of(graph, equal_model(graph), options).estimate.ratio_of_sums;
  const double zero = run_of(graph, augmented, options).estimate.ratio_of_sums;
  options.prune = true;
  const double pruned = run_of(graph, augmented, options).estimate.ratio_of_sums;
  EXPECT_NEAR(pessimistic, exact_ratio(graph, equal_model(graph), 32), 0.002);
  EXPECT_NEAR(zero, exact_ratio(graph, augmented, 32), 0.002);
  EXPECT_NEAR(pruned, exact_ratio(graph, augmented, 32, edges_taken(graph, augmented, loops)),
              0.002);
  // The key points of the figure in docs/simulators/cfg-sim.md. J is executed twice but when all
  // lanes go one way, then once.
  EXPECT_NEAR(pessimistic, 0.412, 0.005);
  EXPECT_NEAR(zero, 0.520, 0.005);
  EXPECT_NEAR(pruned, 0.786, 0.005);
}

// --- What a model's file may not say

class BadModel : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BadModel, IsRefused) {
  const Graph graph = graph_of("digraph { a -> b; a -> c; b -> b; b -> c; }");
  Model model;
  std::string why;
  const std::string json =
      std::string("{\"format\": \"warpcache-branch-profile-1\", ") + GetParam().first + "}";
  EXPECT_FALSE(read_model(json, graph, find_loops(graph), &model, &why));
  EXPECT_EQ(why, GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(
    Each, BadModel,
    ::testing::Values(
        std::pair(R"("branches": {"x": {}})", "block x is not in the graph"),
        std::pair(R"("branches": {"c": {}})", "block c does not branch"),
        std::pair(R"("branches": {"a": {"to": {"x": 1}}})", "block a does not lead to x"),
        std::pair(R"("branches": {"a": {"to": {"b": 0}}})", "block a: the weights make nothing"),
        std::pair(R"("branches": {"a": {"to": {"b": -1}}})",
                  "a to b: expected a number from 0 to 1e+18"),
        std::pair(R"("branches": {"a": {"rho": 2}})", "a: rho: expected a number from 0 to 1"),
        std::pair(R"("branches": {"a": {"trips": 3}})",
                  "block a has \"trips\" or \"stay\" but leaves no loop"),
        std::pair(R"("branches": {"b": {"trips": "often"}})", "b: bad trips often"),
        std::pair(R"("branches": {"b": {"stay": []}})", "b: stay is empty"),
        std::pair(R"("branches": {"b": {"stay": [[0, 0]]}})",
                  "b: stay: expected [executed, stayed]"),
        std::pair(R"("branches": {"a": {"classes": {"x": {}}}})",
                  "class x is not among \"classes\"")));

TEST(Trips, AreDistributions) {
  std::vector<double> stay;
  ASSERT_TRUE(parse_trips("2", &stay));
  EXPECT_EQ(stay, (std::vector<double>{1, 1, 0}));
  ASSERT_TRUE(parse_trips("1+geometric:0.25", &stay));
  EXPECT_EQ(stay, (std::vector<double>{1, 0.25}));
  ASSERT_TRUE(parse_trips("uniform:1:2", &stay));
  EXPECT_EQ(stay, (std::vector<double>{1, 0.5, 0}));
  for (const char* bad : {"", "x", "-1", "uniform:2:1", "uniform:2", "geometric:1", "2000000"}) {
    EXPECT_FALSE(parse_trips(bad, &stay)) << bad;
  }
}

}  // namespace
}  // namespace warpcache::simt
