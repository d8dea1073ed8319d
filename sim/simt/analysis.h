// SPDX-License-Identifier: Apache-2.0
// What the shape of a graph says: where diverged lanes meet again, and which blocks are loops.
#ifndef WARPCACHE_SIM_SIMT_ANALYSIS_H_
#define WARPCACHE_SIM_SIMT_ANALYSIS_H_

#include <cstdint>
#include <vector>

#include "simt/graph.h"

namespace warpcache::simt {

// Which edges there are for the analysis: `alive[block][i]` is for its i-th successor. Empty: all.
using EdgeSet = std::vector<std::vector<bool>>;

struct PostDominatorOptions {
  // A block that a thread can leave or go on from (an EXIT under a predicate) counts as going on:
  // lanes that have ended keep nobody from meeting.
  bool exits_leave = false;
};

// The immediate post-dominator of each block: a block of the same function, or kReturn (in a
// function that returns) or kExit where lanes only meet at the end.
std::vector<uint32_t> immediate_post_dominators(const Graph& graph, const EdgeSet& edges,
                                                const PostDominatorOptions& options);

struct Loop {
  uint32_t header;
  uint32_t parent;               // the loop around it, or kNone
  std::vector<uint32_t> blocks;  // sorted
  bool holds(uint32_t block) const;
};

// Natural loops (one per header), and the innermost of each block.
struct Loops {
  std::vector<Loop> loops;
  std::vector<uint32_t> innermost;  // per block; kNone: in no loop
  std::vector<uint32_t> headed;     // per block: the loop it heads, or kNone

  // The innermost loop that one successor of `block` leaves and another does not, or kNone.
  uint32_t left_at(const Graph& graph, uint32_t block) const;
  bool holds(uint32_t loop, uint32_t block) const;
};

Loops find_loops(const Graph& graph);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_ANALYSIS_H_
