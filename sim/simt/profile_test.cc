// SPDX-License-Identifier: Apache-2.0
// Profiles: of recorded threads, of a profiler's counters, and of listings; what is drawn from them
// gives back what they were made of.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "simt/counters.h"
#include "simt/sampler.h"
#include "simt/test_support.h"
#include "simt/trace.h"
#include "simt/unmix.h"

namespace warpcache::simt {
namespace {

// Keeps the blocks of lane 0.
class Writer final : public Decider {
 public:
  Writer(Sampler& sampler, const Graph& graph) : sampler_(sampler), graph_(graph) {}
  void enter(uint32_t block, LaneMask lanes) override {
    sampler_.enter(block, lanes);
    for (uint32_t lane = 0; lane < kLanesMax; ++lane) {
      if ((lanes >> lane & 1) != 0) walk_[lane] += " " + graph_.blocks[block].name;
    }
  }
  void decide(uint32_t block, LaneMask lanes, LaneMask* parts) override {
    sampler_.decide(block, lanes, parts);
  }
  std::string take(uint32_t lane) { return std::exchange(walk_[lane], ""); }

 private:
  Sampler& sampler_;
  const Graph& graph_;
  std::array<std::string, kLanesMax> walk_;
};

// Threads drawn from a model, as recorded ones.
std::string draw(const Graph& graph, const Model& model, uint32_t warps) {
  const Loops loops = find_loops(graph);
  Sampler sampler(graph, loops, model);
  Writer writer(sampler, graph);
  const auto warp = make_stack_warp(graph, immediate_post_dominators(graph, {}, {}));
  std::string out;
  for (uint32_t i = 0; i < warps; ++i) {
    Tally tally(graph.blocks.size());
    sampler.begin_pass(7, i, 32);
    EXPECT_TRUE(warp->run(0, first_lanes(32), writer, tally, 100'000));
    for (uint32_t lane = 0; lane < 32; ++lane) out += "t" + writer.take(lane) + "\n";
  }
  return out;
}

// A branch, a loop of three to five turns with a way out in the middle, and a correlated branch.
constexpr const char* kGraph =
    "digraph { a [instructions=3]; b [instructions=9]; c [instructions=5]; h [instructions=2];"
    " body [instructions=7]; d [instructions=2]; e [instructions=20]; f [instructions=12];"
    " a -> b; a -> c; b -> h; c -> h; h -> body; h -> d; body -> h; body -> d; d -> e; d -> f;"
    " e -> g; f -> g; }";
constexpr const char* kModel =
    R"({"a": {"to": {"b": 0.8, "c": 0.2}}, "h": {"trips": "uniform:3:5"},
        "body": {"to": {"h": 0.9, "d": 0.1}}, "d": {"to": {"e": 0.4, "f": 0.6}, "rho": 0.6}})";

TEST(Profile, GivesBackTheModelItWasDrawnFrom) {
  const Graph graph = graph_of(kGraph);
  const Loops loops = find_loops(graph);
  std::istringstream in(draw(graph, model_with(kModel, graph), 600));
  Traces traces;
  std::string why;
  ASSERT_TRUE(read_traces(in, graph, 0, &traces, &why)) << why;
  std::string json;
  ASSERT_TRUE(profile_of(graph, loops, traces, {}, {"test"}, &json, &why)) << why;
  const Model found = model_of(json, graph);
  const auto& at = [&](const char* name) -> const BranchModel& {
    return found.branches[graph.find_block(name)];
  };
  EXPECT_NEAR(at("a").classes[0].probability[0], 0.8, 0.01);
  EXPECT_EQ(at("a").rho, 0);
  EXPECT_NEAR(at("d").classes[0].probability[0], 0.4, 0.05);
  EXPECT_NEAR(at("d").rho, 0.6, 0.08);
  const auto& turns = at("h").classes[0].turns;  // the first way is to the body
  ASSERT_EQ(turns.size(), 6u);
  EXPECT_DOUBLE_EQ(turns.at(turn_key(3, 0))[0], 1);
  EXPECT_NEAR(turns.at(turn_key(4, 0))[0], 2.0 / 3, 0.02);
  EXPECT_DOUBLE_EQ(turns.at(turn_key(6, 0))[0], 0);

  Result replayed;
  RunOptions options;
  ASSERT_TRUE(replay(graph, traces, options, {}, nullptr, &replayed, &why)) << why;
  options.passes = 5000;
  const Estimate drawn = run_of(graph, found, options).estimate;
  EXPECT_NEAR(drawn.ratio_of_sums, replayed.estimate.ratio_of_sums, 0.02);
  EXPECT_NEAR(drawn.mean_of_ratios, replayed.estimate.mean_of_ratios, 0.02);
}

// An inner loop of two turns in the first turn of the outer loop and of one in the second: drawn by
// iteration all threads do the same, by mere probabilities they do not.
TEST(Profile, TellsIterationsOfBothLoopsApart) {
  const Graph graph = graph_of("digraph { a -> o; o -> i; i -> i; i -> l; l -> o; l -> e; }");
  const Loops loops = find_loops(graph);
  std::string text;
  for (uint32_t t = 0; t < 32; ++t) text += "t a o i i l o i l e\n";
  std::istringstream in(text);
  Traces traces;
  std::string why;
  ASSERT_TRUE(read_traces(in, graph, 0, &traces, &why)) << why;
  RunOptions options;
  options.passes = 1000;
  std::string json;
  ASSERT_TRUE(profile_of(graph, loops, traces, {}, {"test"}, &json, &why)) << why;
  const Result result = run_of(graph, model_of(json, graph), options);
  EXPECT_DOUBLE_EQ(result.estimate.mean_of_ratios, 1);
  EXPECT_EQ(result.tally.instructions, 1000u * 9);
  ASSERT_TRUE(profile_of(graph, loops, traces, {}, {"test", true}, &json, &why)) << why;
  EXPECT_LT(run_of(graph, model_of(json, graph), options).estimate.mean_of_ratios, 0.7);
}

TEST(Profile, KeepsClassesApart) {
  const Graph graph = graph_of("digraph { a -> b; a -> c; b -> d; c -> d; }");
  std::istringstream in("x a b d\nx a b d\ny a c d\n# text\n\ny a b d\n");
  Traces traces;
  std::string why;
  ASSERT_TRUE(read_traces(in, graph, 0, &traces, &why)) << why;
  std::string json;
  ASSERT_TRUE(profile_of(graph, find_loops(graph), traces, {}, {"test"}, &json, &why)) << why;
  const Model model = model_of(json, graph);
  ASSERT_EQ(model.classes.size(), 2u);
  EXPECT_DOUBLE_EQ(model.classes[0].weight, 0.5);
  EXPECT_DOUBLE_EQ(model.branches[0].classes[0].probability[0], 1);
  EXPECT_DOUBLE_EQ(model.branches[0].classes[1].probability[0], 0.5);
}

// One profile a class, as counters of one launch a class give them.
TEST(Profile, MergesIntoClasses) {
  const Graph graph = graph_of("digraph { a -> b; a -> c; b -> d; c -> d; }");
  const std::string head = R"({"format": "warpcache-branch-profile-1", "branches": )";
  std::string json;
  std::string why;
  ASSERT_TRUE(merge_profiles({{"x", head + R"({"a": {"to": {"b": 9, "c": 0}}}})"},
                              {"y", head + R"({"a": {"to": {"b": 1, "c": 3}}}})"}},
                             &json, &why))
      << why;
  Model model = model_of(json, graph);
  ASSERT_EQ(model.classes.size(), 2u);
  EXPECT_DOUBLE_EQ(model.classes[0].weight, 0.5);
  EXPECT_DOUBLE_EQ(model.branches[0].classes[0].probability[0], 1);
  EXPECT_DOUBLE_EQ(model.branches[0].classes[1].probability[0], 0.25);
  EXPECT_FALSE(merge_profiles({{"x", "{}"}}, &json, &why));
  EXPECT_EQ(why, "x: no branch profile of one class");
}

// Where a class always goes one way its correlation says nothing; else the least of them counts.
TEST(Profile, MergingKeepsWhatWarpsDecideAsOne) {
  const Graph graph = graph_of("digraph { a -> b; a -> c; b -> d; c -> d; }");
  const auto rho_of = [&](const std::string& one, const std::string& other) {
    const std::string head = R"({"format": "warpcache-branch-profile-1", "branches": {"a": )";
    std::string json;
    std::string why;
    EXPECT_TRUE(merge_profiles({{"x", head + one + "}}"}, {"y", head + other + "}}"}}, &json, &why))
        << why;
    return model_of(json, graph).branches[0].rho;
  };
  const std::string open = R"({"to": {"b": 1, "c": 3}, "rho": )";
  EXPECT_DOUBLE_EQ(rho_of(open + "0.9}", open + "0.5}"), 0.5);
  EXPECT_DOUBLE_EQ(rho_of(open + "0.9}", R"({"to": {"b": 4, "c": 0}, "rho": 0})"), 0.9);
  EXPECT_DOUBLE_EQ(rho_of(open + "0.9}", R"({"to": {"b": 1, "c": 1}, "rho": 0})"), 0);
}

// One lane in twenty wants to b: nearly all warps go, and none ever parts.
TEST(Model, VotesAreAWarps) {
  const Graph graph = graph_of("digraph { a -> b; a -> c; b -> d; c -> d; }");
  const Model model = model_of(
      R"({"format": "warpcache-branch-profile-1", "classes": {"x": 95, "y": 5}, "branches": {
          "a": {"vote": "b", "classes": {"x": {"to": {"c": 1}}, "y": {"to": {"b": 1}}}}}})",
      graph);
  RunOptions options;
  options.passes = 20'000;
  const Result result = run_of(graph, model, options);
  EXPECT_DOUBLE_EQ(result.estimate.ratio_of_sums, 1);
  const auto gone = static_cast<double>(result.tally.issues[graph.find_block("b")]);
  EXPECT_NEAR(gone / 20'000, 1 - std::pow(0.95, 32), 0.01);
}

TEST(Model, OneLaneOfAGroup) {
  const Graph graph = graph_of("digraph { a -> b; a -> c; b -> d; c -> d; }");
  const Model model = model_with(R"({"a": {"one": "b"}})", graph);
  RunOptions options;
  options.passes = 100;
  const Result result = run_of(graph, model, options);
  EXPECT_EQ(result.tally.threads[graph.find_block("b")], 100u);
  EXPECT_EQ(result.tally.threads[graph.find_block("c")], 3100u);
}

// A warp with any miss goes to f as a whole; what hits do there, only the mixture has seen: of its
// 1000 threads 150 misses go to g, so the 810 hits that came along go to h.
TEST(Profile, LearnsFromAMixtureWhatAClassDoesInCompany) {
  const Graph graph = graph_of("digraph { a -> f; a -> d; f -> g; f -> h; g -> d; h -> d; }");
  const std::string head = R"({"format": "warpcache-branch-profile-1", "branches": {"a": )";
  std::string json;
  std::string why;
  ASSERT_TRUE(
      merge_profiles({{"hit", head + R"({"vote": "f", "to": {"d": 9}}}})"},
                      {"miss", head + R"({"vote": "f", "to": {"f": 9}}, "f": {"to": {"g": 9}}}})"}},
                     &json, &why))
      << why;
  const Mixture mixture = {
      head + R"({"vote": "f", "to": {"f": 960, "d": 40}}, "f": {"to": {"g": 150, "h": 810}}}})",
      {{"hit", 0.85}, {"miss", 0.15}}};
  ASSERT_TRUE(learn_from_mixture(graph, 0, mixture, &json, &why)) << why;
  const Model model = model_of(json, graph);
  const BranchModel& inside = model.branches[graph.find_block("f")];
  EXPECT_NEAR(inside.classes[0].probability[1], 1, 1e-9);
  EXPECT_NEAR(inside.classes[1].probability[0], 1, 1e-9);
  EXPECT_EQ(model.branches[0].classes[0].probability, (std::vector<double>{0, 1}));
  EXPECT_FALSE(learn_from_mixture(graph, 0, {"{}", {{"hit", 1}}}, &json, &why));
}

TEST(Profile, AClassCanBeLikeAnother) {
  const Graph graph = graph_of("digraph { a -> b; a -> c; b -> d; c -> d; b -> e; e -> d; }");
  const std::string head = R"({"format": "warpcache-branch-profile-1", "branches": {"a": )";
  std::string json;
  std::string why;
  ASSERT_TRUE(merge_profiles({{"x", head + R"({"to": {"c": 1}}}})"},
                              {"y", head + R"({"to": {"b": 1}}, "b": {"to": {"e": 1}}}})"}},
                             &json, &why));
  ASSERT_TRUE(liken({{"x", "y"}}, &json, &why)) << why;
  const Model model = model_of(json, graph);
  EXPECT_EQ(model.branches[0].classes[0].probability, (std::vector<double>{0, 1}));
  EXPECT_EQ(model.branches[graph.find_block("b")].classes[0].probability,
            (std::vector<double>{0, 1}));
  EXPECT_FALSE(liken({{"x", "z"}}, &json, &why));
}

// Half of a warp waits at B0 for the other, which yields: they are together again only where the
// whole warp works as one, and BRA.DIV sees it.
TEST(MachineCode, YieldLetsWaitingLanesGo) {
  const auto graph_with = [](const std::string& middle) {
    return graph_of(
        "digraph { subgraph \"cluster_k\" {"
        " a [label=\"{<entry>k:\\l0010: BSSY B0, `(.m) ;\\l|<exit0>0020: @P0 BRA `(.m) ;\\l}\"];"
        " y [label=\"{<entry>y:\\l0030: " +
        middle +
        " ;\\l}\"];"
        " m [label=\"{<entry>m:\\l0040: BSYNC B0 ;\\l}\"];"
        " d [label=\"{<entry>d:\\l|<exit0>0050: BRA.DIV UR4, `(.p) ;\\l}\"];"
        " e [label=\"{<entry>e:\\l|<exit0>0060: EXIT ;\\l}\"];"
        " p [label=\"{<entry>p:\\l|<exit0>0070: EXIT ;\\l}\"];"
        " a:exit0:e -> m:entry:n; a:exit0:s -> y:entry:n; y:entry:s -> m:entry:n;"
        " m:entry:s -> d:entry:n; d:exit0:e -> p:entry:n; d:exit0:s -> e:entry:n; } }");
  };
  RunOptions options;
  options.passes = 50;
  options.reconvergence = Reconvergence::kMachineCode;
  const auto apart = [&](const std::string& middle) {
    const Graph graph = graph_with(middle);
    // One lane goes on to y: the others are more, go first and wait.
    const Model model = model_with(R"({"a": {"one": "y"}})", graph);
    return run_of(graph, model, options).tally.issues[graph.find_block("p")];
  };
  EXPECT_EQ(apart("MOV R1, R2"), 0u);
  EXPECT_EQ(apart("YIELD"), 50u);  // once they have ended, who yielded is the whole warp
}

TEST(Traces, RefuseWhatTheGraphHasNot) {
  const Graph graph = graph_of("digraph { a -> b; a -> c; b -> d; c -> d; }");
  const auto refusal = [&](const std::string& text) {
    std::istringstream in(text);
    Traces traces;
    std::string why;
    EXPECT_FALSE(read_traces(in, graph, 0, &traces, &why));
    return why;
  };
  EXPECT_EQ(refusal("t a b d\nt a d\n"), "line 2: d does not follow from what stands before it");
  EXPECT_EQ(refusal("t b d\n"), "line 1: b does not follow from what stands before it");
  EXPECT_EQ(refusal("t a b\n"), "line 1: the thread does not end");
  EXPECT_EQ(refusal("# nothing\n"), "no threads");
}

TEST(Traces, AreDrawnByWeight) {
  const Graph graph = graph_of("digraph { a -> b; a -> c; b -> d; c -> d; }");
  std::istringstream in("x a b d\ny a c d\n");
  Traces recorded;
  std::string why;
  ASSERT_TRUE(read_traces(in, graph, 0, &recorded, &why)) << why;
  Traces drawn;
  ASSERT_TRUE(draw_threads(recorded, {0.25, 0.75}, {10'000, 32, 1, 0}, &drawn, &why)) << why;
  uint32_t x = 0;
  for (const ThreadTrace& thread : drawn.threads) x += thread.thread_class == 0;
  EXPECT_NEAR(x / 10'000.0, 0.25, 0.02);
  ASSERT_TRUE(draw_threads(recorded, {0.5, 0.5}, {320, 32, 1, 1}, &drawn, &why)) << why;
  for (size_t i = 0; i < drawn.threads.size(); ++i) {
    EXPECT_EQ(drawn.threads[i].thread_class, drawn.threads[i - i % 32].thread_class);
  }
}

// Figure 3.10 on recorded gets of our own code: the profile predicts what the threads do, equal
// probabilities on what they ever do say less than half. (The pessimistic view needs the whole
// graph: sim/simt/figures.)
TEST(Figure310, OrderAndDistanceOfTheViews) {
  const Graph graph = graph_of(test_file("serve_gets.dot"));
  const Loops loops = find_loops(graph);
  std::istringstream in(test_file("serve_gets.trace"));
  Traces recorded;
  std::string why;
  ASSERT_TRUE(read_traces(in, graph, 0, &recorded, &why)) << why;
  ASSERT_EQ(recorded.classes.size(), 4u);
  Traces drawn;
  const std::vector<double> weights(4, 0.25);
  ASSERT_TRUE(draw_threads(recorded, weights, {32 * 300, 32, 1, 0}, &drawn, &why)) << why;
  RunOptions options;
  Result actual;
  ASSERT_TRUE(replay(graph, drawn, options, {}, nullptr, &actual, &why)) << why;
  std::string json;
  ASSERT_TRUE(profile_of(graph, loops, recorded, options, {"test"}, &json, &why)) << why;
  const Model profile = model_of(json, graph);
  options.passes = 1000;
  const double predicted = run_of(graph, profile, options).estimate.ratio_of_sums;
  const Model augmented = augmented_model(graph, edges_taken(graph, recorded));
  const double of_augmented = run_of(graph, augmented, options).estimate.ratio_of_sums;
  const double truth = actual.estimate.ratio_of_sums;
  EXPECT_NEAR(predicted / truth, 1, 0.03);
  EXPECT_LT(of_augmented * 2, truth);
  // Another mixture by the same profile: hits with keys of 16 bytes only, which all go one way.
  Model reweighted = profile;
  ASSERT_TRUE(reweight("16h=1", &reweighted, &why)) << why;
  std::vector<double> short_hits;
  ASSERT_TRUE(parse_weights("16h=1", recorded.classes, &short_hits, &why)) << why;
  ASSERT_TRUE(draw_threads(recorded, short_hits, {32 * 100, 32, 1, 0}, &drawn, &why)) << why;
  ASSERT_TRUE(replay(graph, drawn, options, {}, nullptr, &actual, &why)) << why;
  EXPECT_NEAR(run_of(graph, reweighted, options).estimate.ratio_of_sums,
              actual.estimate.ratio_of_sums, 0.03);
  EXPECT_GT(actual.estimate.ratio_of_sums, 0.95);
}

// Augmented: what was never taken stays so, the rest is equal.
TEST(Model, AugmentedDropsWhatIsNeverTaken) {
  const Graph graph = graph_of("digraph { a -> b; a -> c; b -> d; b -> c; c -> d; }");
  const Model model =
      model_with(R"({"a": {"to": {"b": 1}}, "b": {"to": {"d": 9, "c": 1}}})", graph);
  const Model augmented = augmented_model(graph, edges_taken(graph, model, find_loops(graph)));
  EXPECT_EQ(augmented.branches[0].classes[0].probability, (std::vector<double>{1, 0}));
  EXPECT_EQ(augmented.branches[1].classes[0].probability, (std::vector<double>{0.5, 0.5}));
}

// Counters of testdata/probe.cu's scan, made up: 2 warps of 32 threads, 4 threads end at once, the
// others loop 3 times on average.
std::string scan_counters() {
  std::string out =
      "\"Kernel Name\",\"scan\"\n\"Address\",\"Source\",\"Instructions Executed\","
      "\"Thread Instructions Executed\",\"Predicated-On Thread Instructions Executed\"\n";
  const auto add = [&](int index, const char* text, int warps, int threads, int on) {
    char line[200];
    std::snprintf(line, sizeof(line), "\"0x%x\",\"%s\",\"%d\",\"%d\",\"%d\"\n",
                  0x7f001000 + 16 * index, text, warps, threads, on);
    out += line;
  };
  for (int i = 0; i < 7; ++i) add(i, "MOV R1, R2", 2, 64, 64);
  add(7, "@P0 EXIT", 2, 64, 4);
  for (int i = 8; i < 15; ++i) add(i, "MOV R1, R2", 2, 60, 60);
  for (int i = 15; i < 22; ++i) add(i, "MOV R1, R2", 9, 180, 180);
  add(22, "@P0 BRA 0xf0", 9, 180, 120);
  add(23, "BSYNC B0", 6, 60, 60);
  for (int i = 24; i < 29; ++i) add(i, "EXIT", 2, 60, 60);
  return out;
}

TEST(Counters, BecomeAProfile) {
  const Graph graph = graph_of(test_file("probe_bbcfg.dot"));
  const uint32_t scan = graph.find_function("scan");
  CounterProfile profile;
  std::string why;
  ASSERT_TRUE(profile_of_counters(scan_counters(), graph, scan, &profile, &why)) << why;
  const double threads = 8 * 64 + 7 * 60 + 8 * 180 + 60 + 5 * 60;
  const double warps = 8 * 2 + 7 * 2 + 8 * 9 + 6 + 5 * 2;
  EXPECT_DOUBLE_EQ(profile.measured_ratio_of_sums, threads / (32 * warps));
  const Model model = model_of(profile.json, graph);
  const auto& entry = model.branches[graph.find_block("scan")].classes[0].probability;
  EXPECT_DOUBLE_EQ(entry[1], 4.0 / 64);
  const auto& loop = model.branches[graph.find_block(".L_x_20")].classes[0].probability;
  EXPECT_DOUBLE_EQ(loop[1], 120.0 / 180);
  RunOptions options;
  options.function = scan;
  options.passes = 20'000;
  options.reconvergence = Reconvergence::kMachineCode;
  const Result result = run_of(graph, model, options);
  EXPECT_NEAR(static_cast<double>(result.tally.threads[graph.find_block(".L_x_20")]) / 20'000,
              32 * 60.0 / 64 * 3, 1);
}

// The guard of "@P0 BRA P1" held for all; how many went on is told by the block after the loop.
TEST(Counters, FollowTheFlowWhereABranchHasTwoConditions) {
  const Graph graph = graph_of(test_file("probe_bbcfg.dot"));
  const uint32_t scan = graph.find_function("scan");
  std::string text = scan_counters();
  const std::string once = "\"@P0 BRA 0xf0\",\"9\",\"180\",\"120\"";
  ASSERT_NE(text.find(once), std::string::npos);
  text.replace(text.find(once), once.size(), "\"@P0 BRA P1, 0xf0\",\"9\",\"180\",\"180\"");
  CounterProfile profile;
  std::string why;
  ASSERT_TRUE(profile_of_counters(text, graph, scan, &profile, &why)) << why;
  const Model model = model_of(profile.json, graph);
  const auto& loop = model.branches[graph.find_block(".L_x_20")].classes[0].probability;
  EXPECT_DOUBLE_EQ(loop[1], 120.0 / 180);
}

// The same with a column more: nearly all warps have gone through the loop's branch as one.
TEST(Counters, TellWhatWarpsDecideAsOne) {
  const Graph graph = graph_of(test_file("probe_bbcfg.dot"));
  const uint32_t scan = graph.find_function("scan");
  const auto rho_with = [&](int divergent) {
    std::istringstream lines(scan_counters());
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      const bool names = line.find("Address") != std::string::npos;
      const bool loop = line.find("@P0 BRA") != std::string::npos;
      if (names) line += ",\"Divergent Branches\"";
      if (line.rfind("\"0x", 0) == 0)
        line += loop ? ",\"" + std::to_string(divergent) + "\"" : ",\"0\"";
      text += line + "\n";
    }
    CounterProfile profile;
    std::string why;
    EXPECT_TRUE(profile_of_counters(text, graph, scan, &profile, &why)) << why;
    return model_of(profile.json, graph).branches[graph.find_block(".L_x_20")].rho;
  };
  EXPECT_NEAR(rho_with(0), 1, 1e-6);
  EXPECT_GT(rho_with(1), 0.9);
  EXPECT_GT(rho_with(1), rho_with(4));
  EXPECT_EQ(rho_with(9), 0);
}

TEST(Counters, RefuseWhatDoesNotFit) {
  const Graph graph = graph_of(test_file("probe_bbcfg.dot"));
  CounterProfile profile;
  std::string why;
  EXPECT_FALSE(profile_of_counters("\"a\",\"b\"\n1,2\n", graph, 0, &profile, &why));
  EXPECT_EQ(why, "it has no table with the columns that are needed");
  std::string text = scan_counters();
  EXPECT_FALSE(
      profile_of_counters(text + "\"x\",\"\",\"1\",\"1\",\"1\"\n", graph, 0, &profile, &why));
  EXPECT_EQ(why, "line 32: not an address and its counts");
  EXPECT_FALSE(profile_of_counters(text, graph_of("digraph { a -> b; }"), 0, &profile, &why));
}

}  // namespace
}  // namespace warpcache::simt
