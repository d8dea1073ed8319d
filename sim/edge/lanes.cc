// SPDX-License-Identifier: Apache-2.0
#include "edge/lanes.h"

#include <algorithm>

#include "simt/model.h"

namespace warpcache::edge_sim {
namespace {

constexpr uint32_t kLanesPerShare = 4;

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

template <typename Counts>
void set_shares(const Counts& by_lanes, uint32_t warp_size, Histogram* out) {
  uint64_t all = 0;
  for (const uint64_t count : by_lanes) all += count;
  out->shares.assign((warp_size + kLanesPerShare - 1) / kLanesPerShare, 0);
  for (uint32_t lanes = 1; lanes <= warp_size; ++lanes)
    out->shares[(lanes - 1) / kLanesPerShare] += ratio(by_lanes[lanes], all);
}

Histogram histogram_of(const simt::Result& result) {
  Histogram out;
  out.efficiency = result.estimate.ratio_of_sums;
  set_shares(result.tally.by_lanes, result.warp_size, &out);
  return out;
}

Histogram recorded_of(const KernelTrace& trace) {
  std::vector<uint64_t> by_lanes(simt::kLanesMax + 1, 0);
  for (const CtaTrace& cta : trace.ctas) {
    for (const WarpTrace& warp : cta) {
      for (const Step& step : warp)
        by_lanes[step.lanes] += trace.kernel->code[step.instruction].slots;
    }
  }
  Histogram out;
  out.efficiency = ratio(trace.lane_instructions(), trace.machine_instructions() * trace.warp_size);
  set_shares(by_lanes, trace.warp_size, &out);
  return out;
}

}  // namespace

simt::Traces threads_of(const KernelTrace& trace) {
  simt::Traces traces;
  traces.classes = {"thread"};
  for (const std::vector<uint32_t>& path : trace.paths) traces.threads.push_back({0, path});
  return traces;
}

bool measure_lanes(const KernelTrace& trace, uint64_t passes, uint64_t seed, Lanes* out,
                   std::string* why) {
  const simt::Graph& graph = trace.kernel->graph;
  const simt::Traces traces = threads_of(trace);
  const simt::Loops loops = simt::find_loops(graph);
  const simt::EdgeSet taken = simt::edges_taken(graph, traces);
  simt::RunOptions options;
  options.warp_size = trace.warp_size;
  options.passes = passes;
  options.seed = seed;
  simt::Result result;
  if (!simt::replay(graph, traces, options, {}, nullptr, &result, why)) return false;
  out->recorded = recorded_of(trace);
  out->actual = histogram_of(result);
  std::string json;
  simt::Model profiled;
  if (!simt::profile_of(graph, loops, traces, options, {"edge-sim", true}, &json, why) ||
      !simt::read_model(json, graph, loops, &profiled, why)) {
    return false;
  }
  const auto estimate = [&](const simt::Model& model, Histogram* histogram) {
    simt::Result drawn;
    if (!simt::run_passes(graph, loops, model, options, {}, &drawn, why)) return false;
    *histogram = histogram_of(drawn);
    return true;
  };
  return estimate(simt::equal_model(graph), &out->equal) &&
         estimate(simt::augmented_model(graph, taken), &out->augmented) &&
         estimate(profiled, &out->profiled);
}

}  // namespace warpcache::edge_sim
