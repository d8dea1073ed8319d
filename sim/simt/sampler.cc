// SPDX-License-Identifier: Apache-2.0
#include "simt/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace warpcache::simt {
namespace {

template <typename Body>
void for_lanes(LaneMask lanes, Body body) {
  for (; lanes != 0; lanes &= lanes - 1) body(static_cast<uint32_t>(std::countr_zero(lanes)));
}

// The loops around `block` that `to` is not in.
std::vector<uint32_t> loops_left(const Loops& loops, uint32_t block, uint32_t to) {
  std::vector<uint32_t> left;
  for (uint32_t l = loops.innermost[block]; l != kNone; l = loops.loops[l].parent) {
    if (!loops.holds(l, to)) left.push_back(l);
  }
  return left;
}

}  // namespace

Sampler::Sampler(const Graph& graph, const Loops& loops, const Model& model)
    : graph_(graph),
      loops_(loops),
      model_(model),
      sites_(graph.blocks.size()),
      class_of_(kLanesMax),
      inside_(loops.loops.size()),
      turn_(loops.loops.size()) {
  for (uint32_t b = 0; b < sites_.size(); ++b) {
    const BranchModel& branch = model.branches[b];
    if (branch.classes.empty()) continue;
    Site& site = sites_[b];
    site.loop = loops.left_at(graph, b);
    site.inner = loops.innermost[b];
    site.outer = site.inner == kNone ? kNone : loops.loops[site.inner].parent;
    for (const uint32_t to : graph.blocks[b].successors) {
      site.leaves.push_back(loops_left(loops, b, to));
    }
    if (branch.round != kNone || branch.more_rounds != kNone) {
      site.visits = std::make_unique<Visits>();
    }
    if (branch.vote != kNone) site.voted = std::make_unique<Voted>();
    if (branch.rho > 0 || branch.held) site.correlated = std::make_unique<Correlated>();
    site.is_plain = graph.blocks[b].successors.size() == 2 && branch.classes.size() == 1 &&
                    branch.vote == kNone && branch.one == kNone && site.visits == nullptr &&
                    !branch.classes[0].is_loop() && branch.classes[0].turns.empty() &&
                    site.correlated == nullptr;
  }
}

void Sampler::begin_pass(uint64_t seed, uint64_t pass, uint32_t lanes) {
  random_ = bench::Random(bench::mix(seed, pass, 1));
  ++pass_;
  alive_ = first_lanes(lanes);
  std::fill(inside_.begin(), inside_.end(), 0);
  if (model_.classes.size() > 1) choose_classes(lanes);
  if (model_.rounds.capacity > 0) choose_rounds(lanes);
}

void Sampler::choose_rounds(uint32_t lanes) {
  std::vector<double> size(lanes);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    size[lane] = model_.rounds.size[model_.classes.size() == 1 ? 0 : class_of_[lane]];
  }
  round_of_ = simt::rounds_of(model_.rounds.capacity, size);
  rounds_ = *std::max_element(round_of_.begin(), round_of_.end());
}

void Sampler::choose_classes(uint32_t lanes) {
  const auto pick = [&] {
    double point = random_.next_unit();
    for (uint8_t i = 0; i + 1u < model_.classes.size(); ++i) {
      point -= model_.classes[i].weight;
      if (point < 0) return i;
    }
    return static_cast<uint8_t>(model_.classes.size() - 1);
  };
  const uint8_t shared = pick();
  const double follows = std::sqrt(model_.class_rho);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    class_of_[lane] = random_.next_unit() < follows ? shared : pick();
  }
}

void Sampler::enter(uint32_t block, LaneMask lanes) {
  const uint32_t loop = loops_.headed[block];
  if (loop == kNone) return;
  for_lanes(lanes, [&](uint32_t lane) {
    const bool again = (inside_[loop] >> lane & 1) != 0;
    turn_[loop][lane] = again ? turn_[loop][lane] + 1 : 1;
  });
  inside_[loop] |= lanes;
}

void Sampler::begin(Correlated& state, const BranchModel& model) {
  if (state.pass != pass_) {
    state.pass = pass_;
    state.has_own = state.follows = 0;
    state.warp.clear();
    state.number.assign(kLanesMax, 0);
    state.own.resize(kLanesMax);
    const double follows = std::sqrt(model.rho);
    for (uint32_t i = 0; i < kLanesMax; ++i) {
      if (random_.next_unit() < follows) state.follows |= LaneMask{1} << i;
    }
  }
}

// Lanes that come together decide together, however often each has been here before.
void Sampler::meet(Correlated& state, LaneMask lanes) {
  uint32_t most = 0;
  for_lanes(lanes, [&](uint32_t lane) { most = std::max(most, state.number[lane]); });
  for_lanes(lanes, [&](uint32_t lane) { state.number[lane] = most; });
}

double Sampler::draw_correlated(Correlated& state, const BranchModel& model, uint32_t lane) {
  const uint32_t number = model.held ? 0 : state.number[lane]++;
  if ((state.follows >> lane & 1) != 0) {
    while (state.warp.size() <= number) state.warp.push_back(random_.next_unit());
    return state.warp[number];
  }
  if (!model.held) return random_.next_unit();
  if ((state.has_own >> lane & 1) == 0) state.own[lane] = random_.next_unit();
  state.has_own |= LaneMask{1} << lane;
  return state.own[lane];
}

double Sampler::draw(Site& site, const BranchModel& model, uint32_t lane) {
  return site.correlated ? draw_correlated(*site.correlated, model, lane) : random_.next_unit();
}

const std::vector<double>& Sampler::probability_now(const Site& site, const Branch& branch,
                                                    uint32_t lane) const {
  if (branch.turns.empty() || site.inner == kNone) return branch.probability;
  const uint32_t inner = turn_[site.inner][lane];
  const uint32_t outer = site.outer == kNone ? 0 : turn_[site.outer][lane];
  auto found = branch.turns.find(turn_key(inner, outer));
  if (found == branch.turns.end()) found = branch.turns.find(turn_key(inner, 0));
  return found == branch.turns.end() ? branch.probability : found->second;
}

// Among the ways that stay in the loop, or among those that leave it.
size_t Sampler::choose_stay(uint32_t block, const Site& site, const Branch& branch, uint32_t lane,
                            double point) const {
  const auto& successors = graph_.blocks[block].successors;
  const size_t turn = std::max(turn_[site.loop][lane], 1u) - 1;
  const double stay = branch.stay[std::min(turn, branch.stay.size() - 1)];
  const bool stays = point < stay;
  point = stays ? point / stay : (point - stay) / (1 - stay);
  double sum = 0;
  for (size_t i = 0; i < successors.size(); ++i) {
    if (loops_.holds(site.loop, successors[i]) == stays) sum += branch.probability[i];
  }
  size_t last = 0;
  for (size_t i = 0; i < successors.size(); ++i) {
    if (loops_.holds(site.loop, successors[i]) != stays) continue;
    if (branch.probability[i] == 0 && sum > 0) continue;
    last = i;
    point -= sum > 0 ? branch.probability[i] / sum : 0;
    if (point < 0) break;
  }
  return last;
}

size_t Sampler::choose(uint32_t block, const Site& site, uint32_t lane, double point) const {
  const BranchModel& model = model_.branches[block];
  const Branch& branch = model.classes[model.classes.size() == 1 ? 0 : class_of_[lane]];
  if (branch.is_loop()) return choose_stay(block, site, branch, lane, point);
  const std::vector<double>& probability = probability_now(site, branch, lane);
  size_t last = 0;
  for (size_t i = 0; i < probability.size(); ++i) {
    if (probability[i] == 0) continue;
    last = i;
    point -= probability[i];
    if (point < 0) break;
  }
  return last;
}

// The whole warp votes, also where its lanes come one group after the other.
size_t Sampler::vote(uint32_t block, Site& site, LaneMask lanes) {
  Voted& voted = *site.voted;
  const uint32_t way = model_.branches[block].vote;
  if (voted.pass == pass_ && (lanes & ~voted.to_come) == 0) {
    voted.to_come &= ~lanes;
    return voted.way;
  }
  // Who is at another iteration, or in no loop, has no say in whether it goes on.
  const LaneMask voters = site.loop == kNone ? alive_ : lanes;
  const double point = random_.next_unit();
  bool any = false;
  for_lanes(voters, [&](uint32_t lane) { any = any || choose(block, site, lane, point) == way; });
  voted = {pass_, voters & ~lanes, any ? way : 1 - way};
  return voted.way;
}

void Sampler::go_by_rounds(uint32_t block, Site& site, LaneMask lanes, LaneMask* parts) {
  const BranchModel& model = model_.branches[block];
  Visits& visits = *site.visits;
  if (visits.pass != pass_) visits = {pass_, {}};
  uint32_t most = 0;
  for_lanes(lanes, [&](uint32_t lane) { most = std::max(most, ++visits.count[lane]); });
  if (model.more_rounds != kNone) {
    parts[most < rounds_ ? model.more_rounds : 1 - model.more_rounds] = lanes;
    return;
  }
  for_lanes(lanes, [&](uint32_t lane) {
    const bool is_known = model_.rounds.size[model_.classes.size() == 1 ? 0 : class_of_[lane]] >= 0;
    const bool is_mine = visits.count[lane] == round_of_[lane];
    const size_t way = is_known ? (is_mine ? model.round : 1 - model.round)
                                : choose(block, site, lane, random_.next_unit());
    parts[way] |= LaneMask{1} << lane;
  });
}

void Sampler::decide(uint32_t block, LaneMask lanes, LaneMask* parts) {
  Site& site = sites_[block];
  const BranchModel& model = model_.branches[block];
  const size_t ways = site.leaves.size();
  std::fill(parts, parts + ways, 0);
  if (site.visits) {
    go_by_rounds(block, site, lanes, parts);
  } else if (model.one != kNone) {
    parts[model.one] = lanes & (~lanes + 1);
    parts[1 - model.one] |= lanes & (lanes - 1);
  } else if (model.vote != kNone) {
    parts[vote(block, site, lanes)] = lanes;
  } else if (site.is_plain) {
    const double first = model.classes[0].probability[0];
    for_lanes(lanes, [&](uint32_t lane) {
      parts[random_.next_unit() < first ? 0 : 1] |= LaneMask{1} << lane;
    });
  } else {
    if (site.correlated) {
      begin(*site.correlated, model);
      meet(*site.correlated, lanes);
    }
    for_lanes(lanes, [&](uint32_t lane) {
      parts[choose(block, site, lane, draw(site, model, lane))] |= LaneMask{1} << lane;
    });
  }
  decided(block, parts);
}

void Sampler::decided(uint32_t block, const LaneMask* parts) {
  const Site& site = sites_[block];
  for (size_t i = 0; i < site.leaves.size(); ++i) {
    for (const uint32_t loop : site.leaves[i]) inside_[loop] &= ~parts[i];
    if (graph_.blocks[block].successors[i] == kExit) alive_ &= ~parts[i];
  }
}

}  // namespace warpcache::simt
