// SPDX-License-Identifier: Apache-2.0
// Draws the decisions of lanes at random from a model, pass after pass.
#ifndef WARPCACHE_SIM_SIMT_SAMPLER_H_
#define WARPCACHE_SIM_SIMT_SAMPLER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "simt/analysis.h"
#include "simt/model.h"
#include "simt/warp.h"
#include "workload/random.h"

namespace warpcache::simt {

class Sampler final : public Decider {
 public:
  // REQUIRES: all three outlive the sampler.
  Sampler(const Graph& graph, const Loops& loops, const Model& model);

  // The draws of a pass depend only on `seed` and the pass's number.
  void begin_pass(uint64_t seed, uint64_t pass, uint32_t lanes);

  void enter(uint32_t block, LaneMask lanes) override;
  void decide(uint32_t block, LaneMask lanes, LaneMask* parts) override;
  void decided(uint32_t block, const LaneMask* parts) override;

 private:
  // The state of a pass's lanes at a branch with correlation.
  struct Correlated {
    LaneMask follows = 0;          // lanes that do what their warp does
    LaneMask has_own = 0;          // held: lanes whose own draw is made
    std::vector<double> warp;      // the warp's draws, by the number of the execution
    std::vector<uint32_t> number;  // per lane, how often it has come here
    std::vector<double> own;       // held: per lane
    uint64_t pass = 0;
  };
  // The last vote of a warp at a branch.
  struct Voted {
    uint64_t pass = 0;
    LaneMask to_come = 0;  // the lanes that have not come to the branch yet
    uint32_t way = 0;
  };
  // How often each lane has come to a branch.
  struct Visits {
    uint64_t pass = 0;
    std::array<uint32_t, kLanesMax> count = {};
  };
  struct Site {
    uint32_t loop = kNone;                      // that the branch may leave
    uint32_t inner = kNone;                     // the innermost loop around it
    uint32_t outer = kNone;                     // and the loop around that
    std::vector<std::vector<uint32_t>> leaves;  // per successor: the loops that end there
    bool is_plain = false;                      // two ways, one class, no loop, no correlation
    std::unique_ptr<Voted> voted;               // null: no vote
    std::unique_ptr<Correlated> correlated;     // null: rho is 0 and nothing is held
    std::unique_ptr<Visits> visits;             // null: it does not go by rounds
  };

  void choose_classes(uint32_t lanes);
  size_t vote(uint32_t block, Site& site, LaneMask lanes);
  void choose_rounds(uint32_t lanes);
  void go_by_rounds(uint32_t block, Site& site, LaneMask lanes, LaneMask* parts);
  double draw(Site& site, const BranchModel& model, uint32_t lane);
  void begin(Correlated& state, const BranchModel& model);
  static void meet(Correlated& state, LaneMask lanes);
  double draw_correlated(Correlated& state, const BranchModel& model, uint32_t lane);
  size_t choose(uint32_t block, const Site& site, uint32_t lane, double point) const;
  size_t choose_stay(uint32_t block, const Site& site, const Branch& branch, uint32_t lane,
                     double point) const;
  const std::vector<double>& probability_now(const Site& site, const Branch& branch,
                                             uint32_t lane) const;

  const Graph& graph_;
  const Loops& loops_;
  const Model& model_;
  bench::Random random_{0};
  uint64_t pass_ = 0;   // counts from 1
  LaneMask alive_ = 0;  // lanes that no branch has led to the end
  std::vector<Site> sites_;
  std::vector<uint8_t> class_of_;                      // per lane
  std::vector<uint32_t> round_of_;                     // per lane, see Rounds
  uint32_t rounds_ = 0;                                // of the warp
  std::vector<LaneMask> inside_;                       // per loop: the lanes that are in it
  std::vector<std::array<uint32_t, kLanesMax>> turn_;  // per loop and lane: the iteration, from 1
};

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_SAMPLER_H_
