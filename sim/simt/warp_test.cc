// SPDX-License-Identifier: Apache-2.0
// Both machines, lane by lane: cases counted by hand, and what holds for any threads.
#include "simt/warp.h"

#include <algorithm>
#include <bit>

#include "simt/analysis.h"
#include "simt/test_support.h"
#include "simt/trace.h"
#include "workload/random.h"

namespace warpcache::simt {
namespace {

Traces traces_of(const Graph& graph, const std::string& text, uint32_t function = 0) {
  std::istringstream in(text);
  Traces traces;
  std::string why;
  EXPECT_TRUE(read_traces(in, graph, function, &traces, &why)) << why;
  return traces;
}

Result replay_of(const Graph& graph, const Traces& traces, const RunOptions& options) {
  Result result;
  std::string why;
  EXPECT_TRUE(replay(graph, traces, options, {}, nullptr, &result, &why)) << why;
  return result;
}

// The walk through of section 2.1.8: nine blocks; six, two, two, four, three, three, one, one and
// six threads in them. (The text says about 46%; these counts, which are its own, make 28/54.)
TEST(StackWarp, Figure23) {
  const Graph graph = graph_of(example("figure_2_3.dot"));
  RunOptions options;
  options.warp_size = 6;
  const Result result = replay_of(graph, traces_of(graph, example("figure_2_3.trace")), options);
  EXPECT_EQ(result.tally.instructions, 9u);
  EXPECT_EQ(result.tally.thread_instructions, 28u);
  EXPECT_EQ(result.tally.issues[graph.find_block("G")], 2u);  // "block G is executed twice"
  EXPECT_DOUBLE_EQ(result.estimate.ratio_of_sums, 28.0 / 54);
}

// Without the last block the same counts are the text's 46%. G is not a post-dominator then: its
// threads come from two ways, and no later block is all of theirs.
TEST(StackWarp, Figure23WithoutItsLastBlock) {
  const Graph graph = graph_of(example("figure_2_3_without_h.dot"));
  RunOptions options;
  options.warp_size = 6;
  const Result result =
      replay_of(graph, traces_of(graph, example("figure_2_3_without_h.trace")), options);
  EXPECT_EQ(result.tally.instructions, 8u);
  EXPECT_EQ(result.tally.thread_instructions, 22u);
  EXPECT_DOUBLE_EQ(result.estimate.ratio_of_sums, 22.0 / 48);
}

TEST(StackWarp, LanesThatLeaveALoopWaitForTheLast) {
  const Graph graph = graph_of("digraph { a -> b; b -> b; b -> c; }");
  RunOptions options;
  options.warp_size = 3;
  const Result result =
      replay_of(graph, traces_of(graph, "t a b c\nt a b b c\nt a b b b b c\n"), options);
  EXPECT_EQ(result.tally.issues[1], 4u);
  EXPECT_EQ(result.tally.threads[1], 7u);
  EXPECT_EQ(result.tally.issues[2], 1u);
}

TEST(StackWarp, CalledFunctionsRunOncePerCallByAllWhoCall) {
  Graph graph;
  graph.functions = {{"main", 0}, {"f", 3}};
  graph.blocks.resize(6);
  const auto set = [&](uint32_t b, const char* name, uint32_t function,
                       std::vector<uint32_t> successors) {
    graph.blocks[b] = {name, function, 1, 0, std::move(successors), {}};
  };
  set(0, "start", 0, {1, 2});
  set(1, "caller", 0, {2});
  set(2, "end", 0, {kExit});
  set(3, "f", 1, {4, 5});
  set(4, "side", 1, {5});
  set(5, "back", 1, {kReturn});
  graph.blocks[1].call = 1;
  const auto meets = immediate_post_dominators(graph, {}, {});
  EXPECT_EQ(meets[3], 5u);
  EXPECT_EQ(meets[5], kReturn);
  for (const bool barriers : {false, true}) {
    auto warp = barriers ? make_barrier_warp(graph) : make_stack_warp(graph, meets);
    class Half final : public Decider {  // at start lane 0 goes on, in f lane 1
     public:
      void enter(uint32_t, LaneMask) override {}
      void decide(uint32_t block, LaneMask lanes, LaneMask* parts) override {
        parts[0] = lanes & (block == 0 ? 0b0111u : 0b0010u);
        parts[1] = lanes & ~parts[0];
      }
    } half;
    Tally tally(graph.blocks.size());
    ASSERT_TRUE(warp->run(0, 0b1111, half, tally, 1000));
    EXPECT_EQ(tally.threads[1], 3u);
    EXPECT_EQ(tally.threads[3], 3u);
    EXPECT_EQ(tally.threads[4], 1u);
    EXPECT_EQ(tally.threads[5], 3u);
    EXPECT_EQ(tally.threads[2], 4u);
    EXPECT_EQ(tally.issues[5], barriers ? 2u : 1u);  // the code has no barrier that joins them
  }
}

TEST(StackWarp, APassWithoutEndIsRefused) {
  const Graph graph = graph_of("digraph { a -> b; b -> b; }");
  RunOptions options;
  options.passes = 1;
  options.steps_max = 1000;
  Result result;
  std::string why;
  EXPECT_FALSE(
      run_passes(graph, find_loops(graph), equal_model(graph), options, nullptr, &result, &why));
  EXPECT_EQ(why, "a pass did not end within 1000 blocks; it was most often in b");
}

// Hand-written machine code: `body` in the records of nvdisasm.
std::string record(const std::string& name, const std::string& body) {
  return "\"" + name + "\" [label=\"{<entry>" + name + ":\\l" + body + "}\"]\n";
}

// if (p) { x; } y;  with BSSY in front and BSYNC after.
std::string barrier_code(const std::string& before_sync) {
  return "digraph f {\nsubgraph \"cluster_k\" {\n" +
         record("k", "BSSY B0, `(.L_y) ;\\l|<exit0>@P0 BRA `(.L_s) ;\\l") +
         "\"k\":exit0:e -> \".L_s\":entry:n;\n\"k\":exit0:s -> \"BB0\":entry:n;\n" +
         record("BB0", "MOV ;\\lMOV ;\\l") + "\"BB0\":entry:s -> \".L_s\":entry:n;\n" +
         record(".L_s", before_sync) + "\".L_s\":entry:s -> \".L_y\":entry:n;\n" +
         record(".L_y", "MOV ;\\l|<exit0>EXIT ;\\l") + "}\n}\n";
}

TEST(BarrierWarp, LanesMeetBehindBsync) {
  const Graph graph = graph_of(barrier_code("BSYNC B0 ;\\l"));
  const Traces traces = traces_of(graph, "t k BB0 .L_s .L_y\nt k .L_s .L_y\nt k .L_s .L_y\n");
  RunOptions options;
  options.warp_size = 3;
  options.reconvergence = Reconvergence::kMachineCode;
  const Result result = replay_of(graph, traces, options);
  EXPECT_EQ(result.tally.issues[graph.find_block(".L_s")], 2u);  // each side waits by itself
  EXPECT_EQ(result.tally.issues[graph.find_block(".L_y")], 1u);
  EXPECT_EQ(result.tally.instructions, 2u + 2 + 2 + 2);
  EXPECT_EQ(result.tally.thread_instructions, 3u * 2 + 2 + 3 + 3u * 2);
  EXPECT_EQ(result.tally.stalls, 0u);
}

TEST(BarrierWarp, WithoutBsyncLanesStayApart) {
  const Graph graph = graph_of(barrier_code("MOV ;\\l"));
  const Traces traces = traces_of(graph, "t k BB0 .L_s .L_y\nt k .L_s .L_y\n");
  RunOptions options;
  options.warp_size = 2;
  options.reconvergence = Reconvergence::kMachineCode;
  EXPECT_EQ(replay_of(graph, traces, options).tally.issues[graph.find_block(".L_y")], 2u);
  options.reconvergence = Reconvergence::kPostDominators;
  EXPECT_EQ(replay_of(graph, traces, options).tally.issues[graph.find_block(".L_y")], 1u);
}

// One side breaks out of the barrier and ends; the others do not wait for it.
TEST(BarrierWarp, BreakAndExitLeaveABarrier) {
  const std::string code =
      "digraph f {\nsubgraph \"cluster_k\" {\n" +
      record("k", "BSSY B3, `(.L_y) ;\\l@P0 BREAK B3 ;\\l|<exit0>@P0 BRA `(.L_far) ;\\l") +
      "\"k\":exit0:e -> \".L_far\":entry:n;\n\"k\":exit0:s -> \"BB0\":entry:n;\n" +
      record("BB0", "|<exit0>@P1 EXIT ;\\l") + "\"BB0\":exit0:s -> \"BB1\":entry:n;\n" +
      record("BB1", "BSYNC B3 ;\\l") + "\"BB1\":entry:s -> \".L_y\":entry:n;\n" +
      record(".L_y", "|<exit0>EXIT ;\\l") + record(".L_far", "|<exit0>EXIT ;\\l") + "}\n}\n";
  const Graph graph = graph_of(code);
  ASSERT_EQ(graph.blocks[0].actions.size(), 2u);
  EXPECT_EQ(graph.blocks[0].actions[1].op, BarrierOp::kBreak);
  EXPECT_EQ(graph.blocks[0].actions[1].who, Who::kTakers);
  const Traces traces =
      traces_of(graph, "t k .L_far\nt k BB0\nt k BB0 BB1 .L_y\nt k BB0 BB1 .L_y\n");
  RunOptions options;
  options.warp_size = 4;
  options.reconvergence = Reconvergence::kMachineCode;
  const Result result = replay_of(graph, traces, options);
  EXPECT_EQ(result.tally.stalls, 0u);
  EXPECT_EQ(result.tally.threads[graph.find_block(".L_y")], 2u);
  EXPECT_EQ(result.tally.issues[graph.find_block(".L_y")], 1u);
}

// A random graph of `size` blocks whose last is the end; edges forward and some back.
std::string random_graph(uint64_t seed, uint32_t size) {
  bench::Random random(seed);
  std::string out = "digraph {\n";
  for (uint32_t b = 0; b < size; ++b) {
    out += "n" + std::to_string(b) + " [instructions=" + std::to_string(1 + random.next() % 9) +
           "];\n";
  }
  for (uint32_t b = 0; b + 1 < size; ++b) {
    out += "n" + std::to_string(b) + " -> n" + std::to_string(b + 1) + ";\n";
    if (random.next() % 3 == 0) continue;
    const uint64_t to =
        random.next() % 4 == 0 ? random.next() % size : b + 1 + random.next() % (size - b - 1);
    if (to != b + 1) out += "n" + std::to_string(b) + " -> n" + std::to_string(to) + ";\n";
  }
  return out + "}\n";
}

// A walk along random edges, 'n0' to the end.
std::string random_walk(const Graph& graph, bench::Random& random) {
  std::string out = "t";
  for (uint32_t b = 0; is_block(b);) {
    out += " " + graph.blocks[b].name;
    const auto& to = graph.blocks[b].successors;
    b = to[random.next() % to.size()];
  }
  return out + "\n";
}

class AnyThreads : public ::testing::TestWithParam<uint64_t> {};

// What a thread executes is its own affair: lanes and machine only change who executes together.
TEST_P(AnyThreads, ExecuteTheirOwnInstructionsAndNoneTwice) {
  bench::Random random(GetParam());
  const Graph graph =
      graph_of(random_graph(GetParam(), 4 + static_cast<uint32_t>(random.next() % 20)));
  std::string text;
  const uint64_t threads = 1 + random.next() % 70;
  for (uint64_t t = 0; t < threads; ++t) text += random_walk(graph, random);
  const Traces traces = traces_of(graph, text);
  uint64_t expected = 0;
  uint64_t longest = 0;
  for (const ThreadTrace& thread : traces.threads) {
    uint64_t own = 0;
    for (const uint32_t b : thread.blocks) own += graph.blocks[b].instructions;
    expected += own;
    longest = std::max(longest, own);
  }
  RunOptions options;
  for (const uint32_t warp_size : {1u, 4u, 32u, 64u}) {
    options.warp_size = warp_size;
    for (const auto how : {Reconvergence::kPostDominators, Reconvergence::kMachineCode}) {
      options.reconvergence = how;
      const Result result = replay_of(graph, traces, options);
      EXPECT_EQ(result.tally.thread_instructions, expected);
      EXPECT_GE(result.tally.instructions, longest);
      EXPECT_LE(result.tally.instructions, expected);
      EXPECT_GT(result.estimate.ratio_of_sums, 0);
      EXPECT_LE(result.estimate.ratio_of_sums, 1);
      EXPECT_TRUE(warp_size > 1 || result.tally.instructions == expected);
    }
  }
}

TEST_P(AnyThreads, ThatAgreeAreOneHundredPercentEfficient) {
  bench::Random random(GetParam() + 1000);
  const Graph graph = graph_of(random_graph(GetParam(), 12));
  const std::string walk = random_walk(graph, random);
  std::string text;
  for (uint32_t lane = 0; lane < 32; ++lane) text += walk;
  const Traces traces = traces_of(graph, text);
  RunOptions options;
  for (const auto how : {Reconvergence::kPostDominators, Reconvergence::kMachineCode}) {
    options.reconvergence = how;
    EXPECT_DOUBLE_EQ(replay_of(graph, traces, options).estimate.ratio_of_sums, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyThreads, ::testing::Range(uint64_t{1}, uint64_t{41}));

}  // namespace
}  // namespace warpcache::simt
