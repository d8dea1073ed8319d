// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "simt/warp.h"

namespace warpcache::simt {
namespace {

size_t successors_max(const Graph& graph) {
  size_t most = 1;
  for (const Block& block : graph.blocks) most = std::max(most, block.successors.size());
  return most;
}

// An entry's lanes run from `next` on until they reach `meet`; then the entry below goes on.
struct Entry {
  uint32_t next;
  uint32_t meet;
  LaneMask lanes;
};

class StackWarp final : public Warp {
 public:
  StackWarp(const Graph& graph, std::vector<uint32_t> post_dominators)
      : graph_(graph),
        post_dominators_(std::move(post_dominators)),
        parts_(successors_max(graph)) {}

  bool run(uint32_t function, LaneMask lanes, Decider& decider, Tally& tally,
           uint64_t steps_max) override {
    alive_ = lanes;
    stack_ = {{graph_.functions[function].entry, kExit, lanes}};
    for (uint64_t step = 0; !stack_.empty();) {
      Entry& top = stack_.back();
      top.lanes &= alive_;
      if (top.next == top.meet || top.lanes == 0) {
        stack_.pop_back();
        continue;
      }
      // A function's end, met by some lanes outside the function's own entry, cannot be.
      if (!is_block(top.next) || step++ == steps_max) return false;
      execute(decider, tally);
    }
    return true;
  }

 private:
  void execute(Decider& decider, Tally& tally) {
    const uint32_t at = stack_.back().next;
    const LaneMask lanes = stack_.back().lanes;
    const Block& block = graph_.blocks[at];
    decider.enter(at, lanes);
    tally.count(at, block.instructions, static_cast<uint32_t>(std::popcount(lanes)));
    if (block.successors.size() == 1) {
      go_on(block, lanes);
    } else {
      decider.decide(at, lanes, parts_.data());
      branch(at, block, lanes);
    }
  }

  void go_on(const Block& block, LaneMask lanes) {
    const uint32_t to = block.successors[0];
    if (to == kExit) alive_ &= ~lanes;
    stack_.back().next = to;
    if (block.call != kNone) {
      stack_.push_back({graph_.functions[block.call].entry, kReturn, lanes});
    }
  }

  void branch(uint32_t at, const Block& block, LaneMask lanes) {
    const uint32_t meet = post_dominators_[at];
    for (size_t i = 0; i < block.successors.size(); ++i) {
      if (block.successors[i] == kExit) alive_ &= ~parts_[i];
      if (parts_[i] != lanes) continue;
      stack_.back().next = block.successors[i];
      return;
    }
    // What meets where the entry itself ends needs no entry of its own to come back to.
    const bool returns_below = stack_.back().meet == meet;
    if (returns_below) {
      stack_.pop_back();
    } else {
      stack_.back().next = meet;
    }
    for (size_t i = 0; i < block.successors.size(); ++i) {
      const LaneMask part = parts_[i] & alive_;
      if (part != 0 && block.successors[i] != meet) {
        stack_.push_back({block.successors[i], meet, part});
      }
    }
  }

  const Graph& graph_;
  const std::vector<uint32_t> post_dominators_;
  std::vector<Entry> stack_;
  std::vector<LaneMask> parts_;
  LaneMask alive_ = 0;
};

}  // namespace

void Tally::add(const Tally& other) {
  for (size_t i = 0; i < issues.size(); ++i) {
    issues[i] += other.issues[i];
    threads[i] += other.threads[i];
  }
  for (size_t i = 0; i < by_lanes.size(); ++i) by_lanes[i] += other.by_lanes[i];
  instructions += other.instructions;
  thread_instructions += other.thread_instructions;
  stalls += other.stalls;
}

std::unique_ptr<Warp> make_stack_warp(const Graph& graph, std::vector<uint32_t> post_dominators) {
  return std::make_unique<StackWarp>(graph, std::move(post_dominators));
}

}  // namespace warpcache::simt
