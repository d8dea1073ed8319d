// SPDX-License-Identifier: Apache-2.0
#include "simt/analysis.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace warpcache::simt {
namespace {

using Lists = std::vector<std::vector<uint32_t>>;

// Dominators of a flow graph by Cooper, Harvey and Kennedy's iteration over a reverse postorder.
class Dominators {
 public:
  Dominators(const Lists& successors, const Lists& predecessors, uint32_t root)
      : order_of_(successors.size(), kNone), idom_(successors.size(), kNone) {
    number(successors, root);
    idom_[root] = root;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto node = postorder_.rbegin() + 1; node != postorder_.rend(); ++node) {
        uint32_t common = kNone;
        for (const uint32_t from : predecessors[*node]) {
          if (idom_[from] != kNone) common = common == kNone ? from : meet(common, from);
        }
        changed |= std::exchange(idom_[*node], common) != common;
      }
    }
  }

  // kNone where the root does not reach it; the root's is itself.
  uint32_t of(uint32_t node) const { return idom_[node]; }

  bool dominates(uint32_t above, uint32_t node) const {
    while (node != kNone && order_of_[node] < order_of_[above]) node = idom_[node];
    return node == above;
  }
  bool reaches(uint32_t node) const { return order_of_[node] != kNone; }

 private:
  void number(const Lists& successors, uint32_t root) {
    std::vector<std::pair<uint32_t, uint32_t>> path = {{root, 0}};
    std::vector<bool> seen(successors.size());
    seen[root] = true;
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next < successors[node].size()) {
        const uint32_t to = successors[node][next++];
        if (!seen[to]) path.emplace_back(to, 0);
        seen[to] = true;
      } else {
        order_of_[node] = static_cast<uint32_t>(postorder_.size());
        postorder_.push_back(node);
        path.pop_back();
      }
    }
  }

  uint32_t meet(uint32_t a, uint32_t b) const {
    while (a != b) {
      while (order_of_[a] < order_of_[b]) a = idom_[a];
      while (order_of_[b] < order_of_[a]) b = idom_[b];
    }
    return a;
  }

  std::vector<uint32_t> postorder_;
  std::vector<uint32_t> order_of_;  // its place in postorder_
  std::vector<uint32_t> idom_;
};

Lists reversed(const Lists& lists) {
  Lists out(lists.size());
  for (uint32_t from = 0; from < lists.size(); ++from) {
    for (const uint32_t to : lists[from]) out[to].push_back(from);
  }
  return out;
}

// The graph turned around, one sink after each function in place of its exits: node
// blocks.size() + f is the sink of function f, and the last is the root after all sinks.
class ReversedGraph {
 public:
  ReversedGraph(const Graph& graph, const EdgeSet& edges, const PostDominatorOptions& options)
      : graph_(graph), sinks_(static_cast<uint32_t>(graph.blocks.size())) {
    forward_.resize(graph.blocks.size() + graph.functions.size() + 1);
    for (uint32_t f = 0; f < graph.functions.size(); ++f) forward_[sinks_ + f].push_back(root());
    for (uint32_t b = 0; b < graph.blocks.size(); ++b) add_edges(b, edges, options);
    drain_endless_loops();
  }

  uint32_t root() const { return static_cast<uint32_t>(forward_.size()) - 1; }
  uint32_t first_sink() const { return sinks_; }
  const Lists& forward() const { return forward_; }

 private:
  void add_edges(uint32_t b, const EdgeSet& edges, const PostDominatorOptions& options) {
    const Block& block = graph_.blocks[b];
    bool goes_on = false;
    for (uint32_t i = 0; i < block.successors.size(); ++i) {
      if (!edges.empty() && !edges[b][i]) continue;
      if (!is_block(block.successors[i])) continue;
      forward_[b].push_back(block.successors[i]);
      goes_on = true;
    }
    for (uint32_t i = 0; i < block.successors.size(); ++i) {
      const bool leaves = block.successors[i] == kExit && goes_on && options.exits_leave;
      if (is_block(block.successors[i]) || leaves || (!edges.empty() && !edges[b][i])) continue;
      forward_[b].push_back(sinks_ + block.function);
    }
  }

  // Blocks from which no path ends get an edge to the end, or they would have no post-dominator.
  void drain_endless_loops() {
    const Lists backward = reversed(forward_);
    std::vector<uint32_t> work = {root()};
    std::vector<bool> ends(forward_.size());
    ends[root()] = true;
    for (uint32_t next = 0; next <= graph_.blocks.size(); ++next) {
      while (!work.empty()) {
        const uint32_t node = work.back();
        work.pop_back();
        for (const uint32_t from : backward[node]) {
          if (!ends[from]) work.push_back(from);
          ends[from] = true;
        }
      }
      if (next == graph_.blocks.size() || ends[next]) continue;
      forward_[next].push_back(sinks_ + graph_.blocks[next].function);
      ends[next] = true;
      work.push_back(next);
    }
  }

  const Graph& graph_;
  uint32_t sinks_;
  Lists forward_;
};

std::vector<bool> functions_that_return(const Graph& graph) {
  std::vector<bool> returns(graph.functions.size());
  for (const Block& block : graph.blocks) {
    const auto& to = block.successors;
    if (std::find(to.begin(), to.end(), kReturn) != to.end()) returns[block.function] = true;
  }
  return returns;
}

// Adds to `loop` what reaches `latch` without passing the header.
void gather_body(const Lists& predecessors, uint32_t latch, std::vector<bool>* in_body,
                 Loop* loop) {
  std::vector<uint32_t> work = {latch};
  while (!work.empty()) {
    const uint32_t block = work.back();
    work.pop_back();
    if ((*in_body)[block]) continue;
    (*in_body)[block] = true;
    loop->blocks.push_back(block);
    work.insert(work.end(), predecessors[block].begin(), predecessors[block].end());
  }
}

Lists block_edges(const Graph& graph) {
  Lists edges(graph.blocks.size() + 1);  // the last leads to all entries
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
    for (const uint32_t to : graph.blocks[b].successors) {
      if (is_block(to)) edges[b].push_back(to);
    }
  }
  for (const Function& function : graph.functions) edges.back().push_back(function.entry);
  return edges;
}

// The smallest loop around each, once all are known, smallest first.
void nest(Loops* found, size_t block_count) {
  std::sort(found->loops.begin(), found->loops.end(), [](const Loop& a, const Loop& b) {
    return std::pair(a.blocks.size(), a.header) < std::pair(b.blocks.size(), b.header);
  });
  found->innermost.assign(block_count, kNone);
  found->headed.assign(block_count, kNone);
  for (uint32_t l = 0; l < found->loops.size(); ++l) {
    Loop& loop = found->loops[l];
    found->headed[loop.header] = l;
    for (const uint32_t block : loop.blocks) {
      if (found->innermost[block] == kNone) found->innermost[block] = l;
    }
    for (uint32_t outer = l + 1; outer < found->loops.size() && loop.parent == kNone; ++outer) {
      if (found->loops[outer].holds(loop.header)) loop.parent = outer;
    }
  }
}

}  // namespace

std::vector<uint32_t> immediate_post_dominators(const Graph& graph, const EdgeSet& edges,
                                                const PostDominatorOptions& options) {
  const ReversedGraph reverse(graph, edges, options);
  const Dominators found(reversed(reverse.forward()), reverse.forward(), reverse.root());
  const std::vector<bool> returns = functions_that_return(graph);
  std::vector<uint32_t> out(graph.blocks.size());
  for (uint32_t b = 0; b < out.size(); ++b) {
    out[b] = found.of(b);
    if (out[b] >= reverse.first_sink()) {
      out[b] = returns[graph.blocks[b].function] ? kReturn : kExit;
    }
  }
  return out;
}

bool Loop::holds(uint32_t block) const {
  return std::binary_search(blocks.begin(), blocks.end(), block);
}

bool Loops::holds(uint32_t loop, uint32_t block) const {
  return is_block(block) && loops[loop].holds(block);
}

uint32_t Loops::left_at(const Graph& graph, uint32_t block) const {
  const auto& successors = graph.blocks[block].successors;
  for (uint32_t loop = innermost[block]; loop != kNone; loop = loops[loop].parent) {
    const auto stays = [&](uint32_t to) { return holds(loop, to); };
    const auto count = std::count_if(successors.begin(), successors.end(), stays);
    if (count > 0 && count < static_cast<std::ptrdiff_t>(successors.size())) return loop;
  }
  return kNone;
}

Loops find_loops(const Graph& graph) {
  const Lists forward = block_edges(graph);
  const Lists backward = reversed(forward);
  const auto root = static_cast<uint32_t>(graph.blocks.size());
  const Dominators dominators(forward, backward, root);
  Loops found;
  for (uint32_t header = 0; header < graph.blocks.size(); ++header) {
    std::vector<bool> in_body;
    Loop loop{header, kNone, {header}};
    for (const uint32_t latch : backward[header]) {
      if (latch == root || !dominators.reaches(latch) || !dominators.dominates(header, latch)) {
        continue;
      }
      if (in_body.empty()) {
        in_body.resize(forward.size());
        in_body[header] = true;
      }
      gather_body(backward, latch, &in_body, &loop);
    }
    if (in_body.empty()) continue;
    std::sort(loop.blocks.begin(), loop.blocks.end());
    found.loops.push_back(loop);
  }
  nest(&found, graph.blocks.size());
  return found;
}

}  // namespace warpcache::simt
