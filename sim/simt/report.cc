// SPDX-License-Identifier: Apache-2.0
#include "simt/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "simt/model.h"

namespace warpcache::simt {
namespace {

constexpr uint32_t kBins = 8;     // of the table's histogram
constexpr double kBarWidth = 50;  // characters for all instructions

std::vector<double> histogram(const Result& result) {
  std::vector<double> shares(result.warp_size, 0.0);
  const double all =
      std::accumulate(result.tally.by_lanes.begin(), result.tally.by_lanes.end(), 0.0);
  for (uint32_t lanes = 1; lanes <= result.warp_size && all > 0; ++lanes) {
    shares[lanes - 1] = static_cast<double>(result.tally.by_lanes[lanes]) / all;
  }
  return shares;
}

std::string place(const Graph& graph, uint32_t to) { return successor_name(graph, to); }

}  // namespace

std::string table(const Result& result, const Expectation* expectation) {
  const Estimate& e = result.estimate;
  const auto passes = static_cast<double>(std::max<uint64_t>(e.passes, 1));
  std::string out;
  out += fmt::format("passes                 {} of {} lanes\n", e.passes, result.warp_size);
  out += fmt::format("efficiency, eq. 3.1    {:.4f} +- {:.4f}   (mean of ratios)\n",
                     e.mean_of_ratios, e.mean_half_width);
  out += fmt::format("efficiency, counters   {:.4f} +- {:.4f}   (ratio of sums)\n", e.ratio_of_sums,
                     e.ratio_half_width);
  if (expectation != nullptr) {
    out += fmt::format("the same, computed     {:.6f}\n", expectation->ratio_of_sums);
  }
  out += fmt::format("instructions a pass    {:.1f} by the warp, {:.1f} by its threads\n",
                     static_cast<double>(result.tally.instructions) / passes,
                     static_cast<double>(result.tally.thread_instructions) / passes);
  if (result.tally.stalls > 0) {
    out += fmt::format("barriers given up      {}\n", result.tally.stalls);
  }
  const std::vector<double> shares = histogram(result);
  const uint32_t bins = std::min(kBins, result.warp_size);
  for (uint32_t bin = 0; bin < bins; ++bin) {
    const uint32_t from = bin * result.warp_size / bins;
    const uint32_t to = (bin + 1) * result.warp_size / bins;
    const double share = std::accumulate(shares.begin() + from, shares.begin() + to, 0.0);
    out += fmt::format("{:>2} to {:>2} lanes         {:>6.2f}% {}\n", from + 1, to, share * 100,
                       std::string(static_cast<size_t>(std::lround(share * kBarWidth)), '#'));
  }
  return out;
}

std::string json_line(const Result& result, const Expectation* expectation) {
  const Estimate& e = result.estimate;
  nlohmann::ordered_json json = {{"passes", e.passes},
                                 {"warp_size", result.warp_size},
                                 {"mean_of_ratios", e.mean_of_ratios},
                                 {"mean_half_width", e.mean_half_width},
                                 {"ratio_of_sums", e.ratio_of_sums},
                                 {"ratio_half_width", e.ratio_half_width}};
  if (expectation != nullptr) json["computed_ratio_of_sums"] = expectation->ratio_of_sums;
  json["instructions"] = result.tally.instructions;
  json["thread_instructions"] = result.tally.thread_instructions;
  json["barriers_given_up"] = result.tally.stalls;
  json["histogram"] = histogram(result);
  for (const Estimate& point : result.convergence) {
    json["convergence"].push_back({point.passes, point.mean_of_ratios, point.mean_half_width,
                                   point.ratio_of_sums, point.ratio_half_width});
  }
  return json.dump() + "\n";
}

std::string block_table(const Graph& graph, const Result& result) {
  std::vector<uint32_t> order(graph.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  const auto weight = [&](uint32_t b) {
    return result.tally.issues[b] * graph.blocks[b].instructions;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return weight(a) > weight(b); });
  uint64_t all = 0;
  for (const uint32_t b : order) all += weight(b);
  std::string out = "  share    executed by warps    lanes  instructions   address  block\n";
  for (const uint32_t b : order) {
    if (result.tally.issues[b] == 0) continue;
    const auto issues = static_cast<double>(result.tally.issues[b]);
    out +=
        fmt::format("{:>6.2f}%  {:>19}  {:>6.2f}  {:>12}  {:>#8x}  {}\n",
                    100 * static_cast<double>(weight(b)) / static_cast<double>(all),
                    result.tally.issues[b], static_cast<double>(result.tally.threads[b]) / issues,
                    graph.blocks[b].instructions, graph.blocks[b].address, graph.blocks[b].name);
  }
  return out;
}

std::string description(const Graph& graph, const Loops& loops,
                        const std::vector<uint32_t>& post_dominators) {
  std::string out;
  for (uint32_t f = 0; f < graph.functions.size(); ++f) {
    out += fmt::format("function {}\n", graph.functions[f].name);
    for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
      const Block& block = graph.blocks[b];
      if (block.function != f) continue;
      out += fmt::format("  {} {} instructions ->", block.name, block.instructions);
      for (const uint32_t to : block.successors) out += " " + place(graph, to);
      if (block.successors.size() > 1) out += " meet " + place(graph, post_dominators[b]);
      if (loops.headed[b] != kNone) {
        out += fmt::format(" heads a loop of {}", loops.loops[loops.headed[b]].blocks.size());
      }
      if (block.call != kNone) out += " calls " + graph.functions[block.call].name;
      for (const BarrierAction& action : block.actions) {
        constexpr const char* kNames[] = {"opens", "breaks", "saves", "restores"};
        out += fmt::format(" {} B{}", kNames[static_cast<int>(action.op)], action.barrier);
      }
      if (block.sync == kWholeWarp) out += " waits for the warp";
      if (block.sync < kWholeWarp) out += fmt::format(" waits at B{}", block.sync);
      out += "\n";
    }
  }
  return out;
}

}  // namespace warpcache::simt
