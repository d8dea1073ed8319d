// SPDX-License-Identifier: Apache-2.0
#include "simt/exact.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace warpcache::simt {
namespace {

constexpr uint32_t kSweepsMax = 100'000;
constexpr double kEnough = 1e-13;  // relative change of a sweep

// binomial(n, k) p^k (1-p)^(n-k) for k = 0..n.
std::vector<double> binomial(uint32_t n, double p) {
  std::vector<double> out(n + 1, 0.0);
  if (p <= 0 || p >= 1) {
    out[p <= 0 ? 0 : n] = 1;
    return out;
  }
  double log_choose = 0;
  for (uint32_t k = 0; k <= n; ++k) {
    out[k] = std::exp(log_choose + k * std::log(p) + (n - k) * std::log1p(-p));
    log_choose += std::log(static_cast<double>(n - k)) - std::log(k + 1.0);
  }
  return out;
}

// The cost of a region is what a group of n lanes makes the warp execute from block b until all of
// them have reached `meet`:
//   cost(b, meet, n) = instructions(b) + the mean over how the lanes split of
//                      the sides' costs up to m = ipdom(b)  +  cost(m, meet, n)
// Since lanes are alike, n says all about a group. With meet = m the last term is nothing, so one
// unknown per block and n, between b and its own post-dominator, makes all others by chaining.
class Costs {
 public:
  Costs(const Graph& graph, const std::vector<uint32_t>& meets, const Model& model, uint32_t lanes)
      : graph_(graph), meets_(meets), lanes_(lanes), cost_(graph.blocks.size()) {
    for (uint32_t b = 0; b < cost_.size(); ++b) {
      cost_[b].assign(lanes + 1, 0.0);
      splits_.emplace_back();
      if (graph.blocks[b].successors.size() != 2) continue;
      for (uint32_t n = 0; n <= lanes; ++n) {
        splits_[b].push_back(binomial(n, model.branches[b].classes[0].probability[1]));
      }
    }
  }

  bool solve() {
    for (uint32_t sweep = 0; sweep < kSweepsMax; ++sweep) {
      double change = 0;
      for (auto b = static_cast<uint32_t>(cost_.size()); b-- > 0;) {
        for (uint32_t n = 1; n <= lanes_; ++n) {
          const double now = once(b, n);
          change = std::max(change, std::abs(now - cost_[b][n]) / std::max(1.0, now));
          cost_[b][n] = now;
        }
      }
      if (change < kEnough) return true;
    }
    return false;
  }

  // From `block` to the end.
  double total(uint32_t block) const { return chain(block, kNone, lanes_); }

 private:
  // From `block` on until `meet`, by way of the post-dominators in between.
  double chain(uint32_t block, uint32_t meet, uint32_t n) const {
    double sum = 0;
    for (; n > 0 && is_block(block) && block != meet; block = meets_[block]) sum += cost_[block][n];
    return sum;
  }

  double once(uint32_t b, uint32_t n) const {
    const Block& block = graph_.blocks[b];
    const uint32_t meet = meets_[b];
    double sum = block.instructions;
    if (splits_[b].empty()) return sum + chain(block.successors[0], meet, n);
    for (uint32_t k = 0; k <= n; ++k) {
      const double p = splits_[b][n][k];
      if (p == 0) continue;
      sum += p * (chain(block.successors[0], meet, n - k) + chain(block.successors[1], meet, k));
    }
    return sum;
  }

  const Graph& graph_;
  const std::vector<uint32_t>& meets_;
  uint32_t lanes_;
  std::vector<std::vector<double>> cost_;
  std::vector<std::vector<std::vector<double>>> splits_;  // per block and n; of the second side
};

const char* beyond(const Graph& graph, const Model& model) {
  if (model.classes.size() > 1) return "classes";
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
    const BranchModel& branch = model.branches[b];
    if (graph.blocks[b].call != kNone) return "calls";
    if (branch.classes.empty()) continue;
    if (branch.rho > 0 || branch.held) return "correlation";
    if (branch.classes[0].is_loop() || !branch.classes[0].turns.empty())
      return "loops by iteration";
    if (graph.blocks[b].successors.size() > 2) return "branches of more than two ways";
  }
  return nullptr;
}

}  // namespace

bool expect(const Graph& graph, const std::vector<uint32_t>& post_dominators, const Model& model,
            uint32_t function, uint32_t warp_size, Expectation* out, std::string* why) {
  if (const char* what = beyond(graph, model)) {
    *why = fmt::format("the exact computation is not for {}", what);
    return false;
  }
  // A warp of one lane executes what a thread does.
  Costs one(graph, post_dominators, model, 1);
  Costs warp(graph, post_dominators, model, warp_size);
  if (!one.solve() || !warp.solve()) {
    *why = "the graph has no end, by these probabilities";
    return false;
  }
  const uint32_t entry = graph.functions[function].entry;
  out->instructions = warp.total(entry);
  out->thread_instructions = warp_size * one.total(entry);
  out->ratio_of_sums = out->thread_instructions / (warp_size * out->instructions);
  return true;
}

}  // namespace warpcache::simt
