// SPDX-License-Identifier: Apache-2.0
// One warp that runs through a graph: which lanes execute which block together, block after block.
// Two machines: the SIMT stack with reconvergence at immediate post-dominators (dissertation,
// section 2.1.8), and convergence barriers as the machine code sets them (BSSY, BSYNC, BREAK).
#ifndef WARPCACHE_SIM_SIMT_WARP_H_
#define WARPCACHE_SIM_SIMT_WARP_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "simt/graph.h"

namespace warpcache::simt {

inline constexpr uint32_t kLanesMax = 64;
using LaneMask = uint64_t;

constexpr LaneMask first_lanes(uint32_t count) {
  return count >= kLanesMax ? ~LaneMask{0} : (LaneMask{1} << count) - 1;
}

// Decides where lanes go: by random draws from probabilities, or from recorded threads.
class Decider {
 public:
  virtual ~Decider() = default;
  // `lanes` execute `block` together. Called for every block, before decide().
  virtual void enter(uint32_t block, LaneMask lanes) = 0;
  // For a block with several successors: parts[i] becomes the lanes that go to the i-th. REQUIRES:
  // the parts are disjoint and make `lanes`.
  virtual void decide(uint32_t block, LaneMask lanes, LaneMask* parts) = 0;
  // Where lanes went from a block of several successors that the machine itself has decided.
  virtual void decided(uint32_t, const LaneMask*) {}
};

// The sums over passes. The unit is the execution of a block by a group of lanes.
struct Tally {
  explicit Tally(size_t block_count) : issues(block_count), threads(block_count) {}

  void count(uint32_t block, uint32_t block_instructions, uint32_t lanes) {
    ++issues[block];
    threads[block] += lanes;
    instructions += block_instructions;
    thread_instructions += uint64_t{block_instructions} * lanes;
    by_lanes[lanes] += block_instructions;
  }
  void add(const Tally& other);

  std::vector<uint64_t> issues;   // per block, by warps
  std::vector<uint64_t> threads;  // per block, by threads
  std::array<uint64_t, kLanesMax + 1> by_lanes =
      {};                            // instructions by how many lanes executed them
  uint64_t instructions = 0;         // by warps
  uint64_t thread_instructions = 0;  // by threads
  uint64_t stalls = 0;  // barriers that were abandoned because not all of their lanes could arrive
};

class Warp {
 public:
  virtual ~Warp() = default;
  // One pass from the beginning of `function` until all `lanes` have ended. False: it took more
  // than `steps_max` blocks, the graph or its probabilities have no end.
  virtual bool run(uint32_t function, LaneMask lanes, Decider& decider, Tally& tally,
                   uint64_t steps_max) = 0;
};

// `graph` outlives the warp. `post_dominators` as analysis.h gives them.
std::unique_ptr<Warp> make_stack_warp(const Graph& graph, std::vector<uint32_t> post_dominators);
std::unique_ptr<Warp> make_barrier_warp(const Graph& graph);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_WARP_H_
