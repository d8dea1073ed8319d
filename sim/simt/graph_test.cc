// SPDX-License-Identifier: Apache-2.0
// Reading graphs: DOT, plain graphs, and what nvdisasm wrote of testdata/probe.cu.
#include <gtest/gtest.h>

#include <algorithm>

#include "simt/analysis.h"
#include "simt/read_graph.h"
#include "simt/test_support.h"

namespace warpcache::simt {
namespace {

std::string refusal(const std::string& text) {
  Graph graph;
  std::string why;
  EXPECT_FALSE(read_graph(text, &graph, &why)) << text;
  return why;
}

TEST(Dot, ReadsNodesEdgesAndAttributes) {
  DotGraph dot;
  std::string why;
  ASSERT_TRUE(
      parse_dot("strict digraph \"g\" { // text\n node [shape=box]; rankdir=LR;\n"
                "subgraph \"cluster_f\" { \"a b\" [label=\"x\\\"y\", w=1]; }\n"
                "/* -> */ \"a b\":out:s -> c -> d:in [p=0.5];\n# text\n e }",
                &dot, &why))
      << why;
  ASSERT_EQ(dot.nodes.size(), 4u);
  EXPECT_EQ(dot.nodes[0].name, "a b");
  EXPECT_EQ(dot.nodes[0].subgraph, "cluster_f");
  EXPECT_EQ(dot.nodes[0].attributes.at("label"), "x\"y");
  EXPECT_EQ(dot.nodes[0].attributes.at("w"), "1");
  ASSERT_EQ(dot.edges.size(), 2u);
  EXPECT_EQ(dot.edges[0].from_port, "out");
  EXPECT_EQ(dot.edges[0].from_side, "s");
  EXPECT_EQ(dot.edges[1].to, "d");
  EXPECT_EQ(dot.edges[1].attributes.at("p"), "0.5");
}

TEST(Dot, RefusesWhatIsNoGraph) {
  EXPECT_EQ(refusal("graph g { a -- b }"), "line 1: no digraph");
  EXPECT_EQ(refusal("digraph {\n a -> \n}"), "line 3: expected a name, found '}'");
  EXPECT_EQ(refusal("digraph { a -> b"), "line 1: the graph has no end");
  EXPECT_EQ(refusal("digraph { \"a"), "line 1: a string without its end");
  EXPECT_FALSE(refusal("digraph " + std::string(100, '{')).empty());
}

TEST(PlainGraph, TakesInstructionsFromAttributeLabelOrSecondFile) {
  Graph graph = graph_of("digraph { a [label=\"a-12\"]; b [instructions=3]; a -> b -> c; }");
  EXPECT_EQ(graph.blocks[0].instructions, 12u);
  EXPECT_EQ(graph.blocks[1].instructions, 3u);
  EXPECT_EQ(graph.blocks[2].instructions, 1u);
  EXPECT_EQ(graph.blocks[2].successors, std::vector<uint32_t>{kExit});
  std::string why;
  ASSERT_TRUE(read_instructions("digraph { c [label=\"c-9\"]; }", &graph, &why)) << why;
  EXPECT_EQ(graph.blocks[2].instructions, 9u);
  EXPECT_FALSE(read_instructions("digraph { x [label=\"x-9\"]; }", &graph, &why));
  EXPECT_EQ(why, "x: not a block of the graph");
}

TEST(PlainGraph, RefusesProbabilitiesThatAreNone) {
  EXPECT_EQ(refusal("digraph { a -> b [probability=0.4]; a -> c [probability=0.4]; }"),
            "block a: its probabilities make 0.8, not 1");
  EXPECT_EQ(refusal("digraph { a -> b [probability=2]; }"), "edge a -> b: bad probability \"2\"");
  EXPECT_EQ(refusal("digraph { a -> b [probability=1]; a -> c; }"),
            "block a: give each of its edges a probability, or none");
  EXPECT_EQ(refusal("digraph { }"), "the graph has no blocks");
}

class Disassembly : public ::testing::TestWithParam<const char*> {
 protected:
  Graph graph_ = graph_of(test_file(GetParam()));
  const Block& block(const std::string& name) const {
    const uint32_t found = graph_.find_block(name);
    EXPECT_NE(found, kNone) << name;
    return graph_.blocks[found == kNone ? 0 : found];
  }
  // Of a function, over all blocks.
  uint32_t instructions(const std::string& function) const {
    uint32_t sum = 0;
    for (const Block& one : graph_.blocks) {
      if (graph_.functions[one.function].name == function) sum += one.instructions;
    }
    return sum;
  }
};

// Counted in the listing: the last instruction of scan lies at 0x1c0, of branch at 0x500, of mix
// at 0x220 after call's 0x160.
TEST_P(Disassembly, FindsEveryInstruction) {
  EXPECT_EQ(graph_.functions.size(), 6u);
  EXPECT_EQ(instructions("scan"), 0x1c0u / 16 + 1);
  EXPECT_EQ(instructions("branch"), 0x500u / 16 + 1);
  EXPECT_EQ(instructions("call"), 0x160u / 16 + 1);
  EXPECT_EQ(instructions("$call$mix"), (0x220u - 0x160) / 16);
}

TEST_P(Disassembly, FollowsBranchesExitsAndCalls) {
  const Block& entry = block("scan");
  EXPECT_EQ(entry.instructions, 8u);
  EXPECT_EQ(entry.address, 0x70u);
  ASSERT_EQ(entry.successors.size(), 2u);
  EXPECT_EQ(entry.successors[1], kExit);  // @P0 EXIT
  const Block& loop = block(".L_x_20");
  EXPECT_EQ(loop.instructions, 8u);
  ASSERT_EQ(loop.successors.size(), 2u);
  EXPECT_EQ(graph_.blocks[loop.successors[1]].name, ".L_x_20");
  const Block& after = block(".L_x_13");
  ASSERT_NE(after.call, kNone);
  EXPECT_EQ(graph_.functions[after.call].name, "$call$mix");
  EXPECT_EQ(block(".L_x_16").successors, std::vector<uint32_t>{kReturn});
  EXPECT_EQ(block(".L_x_30").successors.size(), 3u);  // BRX with three targets
}

TEST_P(Disassembly, FindsBarriers) {
  const Block& opens = block(".L_x_0");
  ASSERT_EQ(opens.actions.size(), 1u);
  EXPECT_EQ(opens.actions[0].op, BarrierOp::kOpen);
  EXPECT_EQ(opens.actions[0].barrier, 0u);
  EXPECT_EQ(block(".L_x_4").sync, 0u);
  EXPECT_EQ(block(".L_x_25").sync, 1u);
  EXPECT_EQ(block(".L_x_3").sync, kNoBarrier);
}

TEST_P(Disassembly, LoopsAndPostDominators) {
  const Loops loops = find_loops(graph_);
  const uint32_t loop = graph_.find_block(".L_x_26");
  EXPECT_EQ(loops.left_at(graph_, loop), loops.headed[loop]);
  EXPECT_NE(loops.headed[loop], kNone);
  const auto meets = immediate_post_dominators(graph_, {}, {});
  EXPECT_EQ(graph_.blocks[meets[loop]].name, ".L_x_25");
  EXPECT_EQ(meets[graph_.find_block("scan")], kExit);
  EXPECT_EQ(meets[graph_.find_block(".L_x_16")], kReturn);
  const auto early = immediate_post_dominators(graph_, {}, {.exits_leave = true});
  EXPECT_EQ(early[graph_.find_block("scan")],
            graph_.blocks[graph_.find_block("scan")].successors[0]);
}

INSTANTIATE_TEST_SUITE_P(Forms, Disassembly, ::testing::Values("probe_bbcfg.dot", "probe_cfg.dot"));

TEST(PostDominators, Figure39MeetsAtKUntilTheErrorEdgeIsPruned) {
  const Graph graph = graph_of(example("figure_3_9.dot"));
  const auto at = [&](const char* name) { return graph.find_block(name); };
  auto meets = immediate_post_dominators(graph, {}, {});
  EXPECT_EQ(meets[at("A")], at("K"));
  EXPECT_EQ(meets[at("B")], at("K"));
  EXPECT_EQ(meets[at("C")], at("J"));
  EXPECT_EQ(meets[at("K")], kExit);
  EdgeSet edges(graph.blocks.size());
  for (size_t b = 0; b < edges.size(); ++b) {
    edges[b].assign(graph.blocks[b].successors.size(), true);
  }
  edges[at("B")][1] = false;  // to K
  meets = immediate_post_dominators(graph, edges, {});
  EXPECT_EQ(meets[at("A")], at("J"));
  EXPECT_EQ(meets[at("B")], at("D"));
}

TEST(PostDominators, EndlessLoopsMeetAtTheEnd) {
  const Graph graph = graph_of("digraph { a -> b; a -> c; b -> b; c -> d; }");
  EXPECT_EQ(immediate_post_dominators(graph, {}, {})[0], kExit);
}

TEST(Loops, Nest) {
  const Graph graph = graph_of(
      "digraph { a -> outer; outer -> inner; inner -> inner; inner -> latch; latch -> outer;"
      " latch -> end; }");
  const Loops loops = find_loops(graph);
  ASSERT_EQ(loops.loops.size(), 2u);
  const uint32_t inner = loops.headed[graph.find_block("inner")];
  const uint32_t outer = loops.headed[graph.find_block("outer")];
  EXPECT_EQ(loops.loops[inner].parent, outer);
  EXPECT_EQ(loops.loops[outer].parent, kNone);
  EXPECT_EQ(loops.left_at(graph, graph.find_block("inner")), inner);
  EXPECT_EQ(loops.left_at(graph, graph.find_block("latch")), outer);
  EXPECT_EQ(loops.left_at(graph, graph.find_block("a")), kNone);
}

}  // namespace
}  // namespace warpcache::simt
