// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "simt/warp.h"

namespace warpcache::simt {
namespace {

constexpr uint32_t kRegisters = 256;

// Lanes that run together: the next block, and the blocks behind the calls they are in.
struct Group {
  uint32_t next;
  LaneMask lanes;
  std::vector<uint32_t> returns;
};

// Convergence barriers as the machine code uses them. A barrier's lanes are kept per lane, so that
// groups apart can use one barrier each for themselves. A group runs until it waits or ends; lanes
// meet at barriers and nowhere else, and of a branch the side that falls through runs first.
class BarrierWarp final : public Warp {
 public:
  explicit BarrierWarp(const Graph& graph) : graph_(graph), saved_(kRegisters) {
    size_t most = 1;
    for (const Block& block : graph.blocks) most = std::max(most, block.successors.size());
    parts_.resize(most);
  }

  bool run(uint32_t function, LaneMask lanes, Decider& decider, Tally& tally,
           uint64_t steps_max) override {
    reset(lanes);
    ready_.push_back({graph_.functions[function].entry, lanes, {}});
    uint64_t steps = 0;
    while (!ready_.empty() || !waiting_.empty()) {
      if (ready_.empty()) {
        ++tally.stalls;
        ready_.push_back(std::move(waiting_.back().group));
        waiting_.pop_back();
      }
      if (steps++ == steps_max) return false;
      Group group = std::move(ready_.back());
      ready_.pop_back();
      execute(group, decider, tally);
    }
    return true;
  }

 private:
  struct Waiting {
    uint8_t barrier;
    Group group;
  };
  using PerLane = std::array<LaneMask, kLanesMax>;

  void reset(LaneMask lanes) {
    alive_ = lanes;
    ready_.clear();
    waiting_.clear();
    for (PerLane& barrier : members_) barrier.fill(0);
    for (PerLane& reg : saved_) reg.fill(0);
    members_[kWholeWarp].fill(lanes);
  }

  template <typename Body>
  static void for_lanes(LaneMask lanes, Body body) {
    for (; lanes != 0; lanes &= lanes - 1) body(static_cast<uint32_t>(std::countr_zero(lanes)));
  }

  void execute(Group& group, Decider& decider, Tally& tally) {
    const uint32_t at = group.next;
    const Block& block = graph_.blocks[at];
    decider.enter(at, group.lanes);
    tally.count(at, block.instructions, static_cast<uint32_t>(std::popcount(group.lanes)));
    std::fill(parts_.begin(), parts_.end(), 0);
    if (block.successors.size() == 1) {
      parts_[0] = group.lanes;
    } else {
      decider.decide(at, group.lanes, parts_.data());
    }
    for (const BarrierAction& action : block.actions) act(action, block, group.lanes);
    if (block.sync != kNoBarrier) return wait(block, group);
    if (block.call != kNone) {
      group.returns.push_back(block.successors[0]);
      group.next = graph_.functions[block.call].entry;
      ready_.push_back(std::move(group));
      return;
    }
    for (size_t i = block.successors.size(); i-- > 0;) {
      if (parts_[i] != 0) go_to(block.successors[i], parts_[i], group.returns);
    }
  }

  void go_to(uint32_t to, LaneMask lanes, std::vector<uint32_t> returns) {
    if (to == kReturn && !returns.empty()) {
      to = returns.back();
      returns.pop_back();
    }
    if (is_block(to)) {
      ready_.push_back({to, lanes, std::move(returns)});
      return;
    }
    alive_ &= ~lanes;
    release();
  }

  LaneMask concerned(const BarrierAction& action, const Block& block, LaneMask lanes) const {
    const size_t last = block.successors.size() - 1;
    if (action.who == Who::kAll || last == 0) return lanes;
    return action.who == Who::kTakers ? parts_[last] : lanes & ~parts_[last];
  }

  void act(const BarrierAction& action, const Block& block, LaneMask lanes) {
    PerLane& barrier = members_[action.barrier];
    switch (action.op) {
      case BarrierOp::kOpen:
        for_lanes(lanes, [&](uint32_t lane) { barrier[lane] = lanes; });
        break;
      case BarrierOp::kBreak: {
        const LaneMask gone = concerned(action, block, lanes);
        for_lanes(gone, [&](uint32_t lane) {
          for_lanes(barrier[lane], [&](uint32_t other) { barrier[other] &= ~gone; });
          barrier[lane] = 0;
        });
        release();
        break;
      }
      case BarrierOp::kSave:
        for_lanes(lanes, [&](uint32_t lane) {
          if (action.reg != UINT8_MAX) saved_[action.reg][lane] = barrier[lane];
          barrier[lane] = 0;
        });
        break;
      case BarrierOp::kRestore:
        for_lanes(lanes, [&](uint32_t lane) {
          barrier[lane] = action.reg == UINT8_MAX ? 0 : saved_[action.reg][lane];
        });
        break;
    }
  }

  void wait(const Block& block, Group& group) {
    group.next = block.successors[0];
    waiting_.push_back({block.sync, std::move(group)});
    release();
  }

  // Whether all whom the lanes of `one` wait for wait as well.
  bool is_complete(const Waiting& one) const {
    LaneMask here = 0;
    for (const Waiting& other : waiting_) {
      if (other.barrier == one.barrier) here |= other.group.lanes;
    }
    LaneMask wanted = 0;
    for_lanes(one.group.lanes, [&](uint32_t lane) { wanted |= members_[one.barrier][lane]; });
    return (wanted & alive_ & ~here) == 0;
  }

  // Sets those going whose barrier is complete.
  void release() {
    for (size_t i = 0; i < waiting_.size();) {
      if (!is_complete(waiting_[i])) {
        ++i;
        continue;
      }
      const uint8_t barrier = waiting_[i].barrier;
      LaneMask wanted = waiting_[i].group.lanes;
      for_lanes(wanted, [&](uint32_t lane) { wanted |= members_[barrier][lane]; });
      set_going(barrier, wanted);
      i = 0;
    }
  }

  // Who goes to the same place goes together from here on.
  void set_going(uint8_t barrier, LaneMask wanted) {
    const auto first_new = static_cast<std::ptrdiff_t>(ready_.size());
    for (size_t i = 0; i < waiting_.size();) {
      Group& group = waiting_[i].group;
      if (waiting_[i].barrier != barrier || (group.lanes & wanted) == 0) {
        ++i;
        continue;
      }
      const auto same = std::find_if(ready_.begin() + first_new, ready_.end(), [&](const Group& g) {
        return g.next == group.next && g.returns == group.returns;
      });
      if (same != ready_.end()) {
        same->lanes |= group.lanes;
      } else {
        ready_.push_back(std::move(group));
      }
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  const Graph& graph_;
  std::array<PerLane, kBarriers> members_ = {};
  std::vector<PerLane> saved_;
  std::vector<Group> ready_;
  std::vector<Waiting> waiting_;
  std::vector<LaneMask> parts_;
  LaneMask alive_ = 0;
};

}  // namespace

std::unique_ptr<Warp> make_barrier_warp(const Graph& graph) {
  return std::make_unique<BarrierWarp>(graph);
}

}  // namespace warpcache::simt
