// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "simt/warp.h"

namespace warpcache::simt {
namespace {

constexpr uint32_t kRegisters = 256;

// Lanes that run together: the next block, and the blocks after the calls they are in.
struct Group {
  uint32_t next;
  LaneMask lanes;
  std::vector<uint32_t> returns;
};

// Convergence barriers as the machine code uses them: a mask of lanes each, that BSSY adds to and
// whoever has waited leaves empty. Groups apart share it. A group runs until it waits, yields or
// ends; lanes meet at barriers, or where one yields at a place where others are ready to go on. Of
// a branch the side with more lanes runs first.
//
// YIELD is what the counters of a GPU show of it: who yields lets those who are ready go first,
// and until it runs again nobody waits for it; where none is ready, it sends off one group that
// waits for it. A barrier that lanes have left like this is void for all of them.
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
    yielded_ = 0;
    last_come_ = 0;
    ready_.clear();
    waiting_.clear();
    members_.fill(0);
    for (PerLane& reg : saved_) reg.fill(0);
    members_[kWholeWarp] = lanes;
  }

  template <typename Body>
  static void for_lanes(LaneMask lanes, Body body) {
    for (; lanes != 0; lanes &= lanes - 1) body(static_cast<uint32_t>(std::countr_zero(lanes)));
  }

  void execute(Group& group, Decider& decider, Tally& tally) {
    const uint32_t at = group.next;
    const Block& block = graph_.blocks[at];
    yielded_ &= ~group.lanes;
    if (block.loads) yielded_ = 0;  // meanwhile the others go on
    decider.enter(at, group.lanes);
    tally.count(at, block.instructions, static_cast<uint32_t>(std::popcount(group.lanes)));
    std::fill(parts_.begin(), parts_.end(), 0);
    if (block.successors.size() == 1) {
      parts_[0] = group.lanes;
    } else if (block.if_divided) {
      parts_[group.lanes == alive_ ? 0 : block.successors.size() - 1] = group.lanes;
      decider.decided(at, parts_.data());
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
    if (block.yields) return yield(block, group);
    if (block.disperses) return disperse(block, group);
    order_.clear();
    for (uint32_t i = 0; i < block.successors.size(); ++i) {
      if (parts_[i] != 0) order_.push_back(i);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      return std::popcount(parts_[a]) < std::popcount(parts_[b]);
    });
    for (const uint32_t i : order_) go_to(block.successors[i], parts_[i], group.returns);
  }

  void yield(const Block& block, Group& group) {
    group.next = block.successors[0];
    const auto same = std::find_if(ready_.begin(), ready_.end(), [&](const Group& other) {
      return other.next == group.next && other.returns == group.returns;
    });
    if (same != ready_.end()) {
      group.lanes |= same->lanes;
      ready_.erase(same);
    }
    if (!ready_.empty()) {
      yielded_ |= group.lanes;
      ready_.insert(ready_.begin(), std::move(group));
      return;
    }
    const LaneMask lanes = group.lanes;
    ready_.push_back(std::move(group));
    for (size_t i = waiting_.size(); i-- > 0;) {
      const uint8_t barrier = waiting_[i].barrier;
      if (barrier >= kWholeWarp || (wanted_by(waiting_[i]) & lanes) == 0) continue;
      set_going(barrier, wanted_by(waiting_[i]));
      return;
    }
  }

  // Behind what a warp has done as one: those who had waited for it, and who came last.
  void disperse(const Block& block, const Group& group) {
    for (const LaneMask part : {group.lanes & ~last_come_, group.lanes & last_come_}) {
      if (part != 0) go_to(block.successors[0], part, group.returns);
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
    LaneMask& barrier = members_[action.barrier];
    switch (action.op) {
      case BarrierOp::kOpen:
        barrier |= lanes;
        break;
      case BarrierOp::kBreak:
        barrier &= ~concerned(action, block, lanes);
        release();
        break;
      case BarrierOp::kSave:
        if (action.reg != UINT8_MAX) {
          for_lanes(lanes, [&](uint32_t lane) { saved_[action.reg][lane] = barrier; });
        }
        barrier = 0;
        break;
      case BarrierOp::kRestore:
        barrier = 0;
        if (action.reg != UINT8_MAX) {
          for_lanes(lanes, [&](uint32_t lane) { barrier |= saved_[action.reg][lane]; });
        }
        break;
    }
  }

  void wait(const Block& block, Group& group) {
    group.next = block.successors[0];
    if (block.sync != kWholeWarp && (members_[block.sync] & group.lanes) == 0) {
      ready_.push_back(std::move(group));  // nobody waits for it there
      return;
    }
    if (block.collects) last_come_ = group.lanes;
    waiting_.push_back({block.sync, std::move(group)});
    release();
  }

  // Whether all whom the lanes of `one` wait for wait as well.
  bool is_complete(const Waiting& one) const {
    LaneMask here = 0;
    for (const Waiting& other : waiting_) {
      if (other.barrier == one.barrier) here |= other.group.lanes;
    }
    const LaneMask excused = one.barrier < kWholeWarp ? yielded_ : 0;
    return (members_[one.barrier] & alive_ & ~here & ~excused) == 0;
  }

  LaneMask wanted_by(const Waiting& one) const { return one.group.lanes | members_[one.barrier]; }

  // Sets those going whose barrier is complete.
  void release() {
    for (size_t i = 0; i < waiting_.size();) {
      if (!is_complete(waiting_[i])) {
        ++i;
        continue;
      }
      set_going(waiting_[i].barrier, wanted_by(waiting_[i]));
      i = 0;
    }
  }

  // Who goes to the same place goes together from here on.
  void set_going(uint8_t barrier, LaneMask wanted) {
    const auto first_new = static_cast<std::ptrdiff_t>(ready_.size());
    if (barrier < kWholeWarp) members_[barrier] = 0;
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
  std::array<LaneMask, kBarriers> members_ = {};
  std::vector<PerLane> saved_;
  std::vector<Group> ready_;
  std::vector<Waiting> waiting_;
  std::vector<LaneMask> parts_;
  std::vector<uint32_t> order_;  // of the ways that are taken, the last first
  LaneMask alive_ = 0;
  LaneMask yielded_ = 0;    // have not run since
  LaneMask last_come_ = 0;  // to the last WARPSYNC.COLLECTIVE
};

}  // namespace

std::unique_ptr<Warp> make_barrier_warp(const Graph& graph) {
  return std::make_unique<BarrierWarp>(graph);
}

}  // namespace warpcache::simt
