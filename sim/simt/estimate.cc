// SPDX-License-Identifier: Apache-2.0
#include "simt/estimate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "simt/sampler.h"

namespace warpcache::simt {
namespace {

constexpr double kNormal95 = 1.959963984540054;
constexpr uint64_t kChunk = 1000;  // passes that one thread does in a row
constexpr uint64_t kFirstPoint = 10;

double variance(double sum, double squares, double count) {
  return std::max(0.0, (squares - sum * sum / count) / (count - 1));
}

// What a chunk of passes came to.
struct Chunk {
  Chunk(const Graph& graph, uint32_t warp_size) : sums(warp_size), tally(graph.blocks.size()) {}
  Accumulator sums;
  Tally tally;
  std::vector<Accumulator> points;  // the sums so far where the series has a point
  bool ended = true;
};

// 10, 20, 50, 100, ...
bool is_point(uint64_t passes) {
  uint64_t scale = kFirstPoint;
  while (scale * 10 <= passes) scale *= 10;
  return passes == scale || passes == 2 * scale || passes == 5 * scale;
}

Chunk run_chunk(const Graph& graph, const RunOptions& options, uint64_t first, uint64_t count,
                Warp& warp, Sampler& sampler) {
  Chunk chunk(graph, options.warp_size);
  for (uint64_t pass = first; pass < first + count && chunk.ended; ++pass) {
    sampler.begin_pass(options.seed, pass, options.warp_size);
    const uint64_t issued = chunk.tally.instructions;
    const uint64_t used = chunk.tally.thread_instructions;
    chunk.ended = warp.run(options.function, first_lanes(options.warp_size), sampler, chunk.tally,
                           options.steps_max);
    chunk.sums.add_pass(chunk.tally.instructions - issued, chunk.tally.thread_instructions - used);
    if (is_point(pass + 1)) chunk.points.push_back(chunk.sums);
  }
  return chunk;
}

// A thread's own machine and sampler.
struct Runner {
  Runner(const Graph& graph, const Loops& loops, const Model& model, const RunOptions& options)
      : warp(make_warp(graph, options,
                       options.prune ? edges_taken(graph, model, loops) : EdgeSet{})),
        sampler(graph, loops, model) {}
  std::unique_ptr<Warp> warp;
  Sampler sampler;
};

bool is_narrow(const Estimate& estimate, double half_width) {
  return estimate.passes >= kChunk && estimate.mean_half_width <= half_width &&
         estimate.ratio_half_width <= half_width;
}

// A chunk for each thread, from pass `first` on; empty after the last pass.
std::vector<Chunk> run_round(const Graph& graph, const RunOptions& options, uint64_t first,
                             std::vector<Runner>& runners) {
  std::vector<Chunk> chunks(runners.size(), Chunk(graph, options.warp_size));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < runners.size() && first < options.passes; ++t, first += kChunk) {
    threads.emplace_back([&, t, first] {
      chunks[t] = run_chunk(graph, options, first, std::min(kChunk, options.passes - first),
                            *runners[t].warp, runners[t].sampler);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return chunks;
}

void take(const Chunk& chunk, Accumulator* sums, Result* out) {
  for (const Accumulator& within : chunk.points) {
    Accumulator so_far = *sums;
    so_far.add(within);
    out->convergence.push_back(so_far.estimate());
  }
  sums->add(chunk.sums);
  out->tally.add(chunk.tally);
  out->estimate = sums->estimate();
}

}  // namespace

void Accumulator::add_pass(uint64_t instructions, uint64_t thread_instructions) {
  const auto issued = static_cast<double>(instructions);
  const double used = static_cast<double>(thread_instructions) / warp_size_;
  const double ratio = instructions == 0 ? 1 : used / issued;
  ++passes_;
  ratio_ += ratio;
  ratio_squared_ += ratio * ratio;
  issued_ += issued;
  issued_squared_ += issued * issued;
  used_ += used;
  used_squared_ += used * used;
  product_ += issued * used;
}

void Accumulator::add(const Accumulator& other) {
  passes_ += other.passes_;
  ratio_ += other.ratio_;
  ratio_squared_ += other.ratio_squared_;
  issued_ += other.issued_;
  issued_squared_ += other.issued_squared_;
  used_ += other.used_;
  used_squared_ += other.used_squared_;
  product_ += other.product_;
}

// The ratio's interval by the first-order expansion of a ratio of means.
Estimate Accumulator::estimate() const {
  Estimate out;
  out.passes = passes_;
  if (passes_ == 0 || issued_ == 0) return out;
  const auto n = static_cast<double>(passes_);
  out.mean_of_ratios = ratio_ / n;
  out.ratio_of_sums = used_ / issued_;
  if (passes_ < 2) return out;
  out.mean_half_width = kNormal95 * std::sqrt(variance(ratio_, ratio_squared_, n) / n);
  const double r = out.ratio_of_sums;
  const double residual = used_squared_ - 2 * r * product_ + r * r * issued_squared_;
  const double spread = std::sqrt(std::max(0.0, residual) / (n - 1));
  out.ratio_half_width = kNormal95 * spread / std::sqrt(n) / (issued_ / n);
  return out;
}

std::unique_ptr<Warp> make_warp(const Graph& graph, const RunOptions& options,
                                const EdgeSet& taken) {
  if (options.reconvergence == Reconvergence::kMachineCode) return make_barrier_warp(graph);
  return make_stack_warp(graph, immediate_post_dominators(graph, taken, options.post_dominators));
}

bool run_passes(const Graph& graph, const Loops& loops, const Model& model,
                const RunOptions& options, const Progress& progress, Result* out,
                std::string* why) {
  *out = {};
  out->warp_size = options.warp_size;
  out->tally = Tally(graph.blocks.size());
  Accumulator sums(options.warp_size);
  std::vector<Runner> runners;
  runners.reserve(options.threads);
  for (uint32_t t = 0; t < options.threads; ++t) runners.emplace_back(graph, loops, model, options);
  for (uint64_t done = 0; done < options.passes;) {
    for (const Chunk& chunk : run_round(graph, options, done, runners)) {
      if (!chunk.ended) {
        const std::vector<uint64_t>& issues = chunk.tally.issues;
        const auto most = std::max_element(issues.begin(), issues.end()) - issues.begin();
        *why = fmt::format("a pass did not end within {} blocks; it was most often in {}",
                           options.steps_max, graph.blocks[static_cast<size_t>(most)].name);
        return false;
      }
      take(chunk, &sums, out);
      if (options.half_width > 0 && is_narrow(out->estimate, options.half_width)) return true;
    }
    done = std::min(done + options.threads * kChunk, options.passes);
    if (progress) progress(done);
  }
  return true;
}

}  // namespace warpcache::simt
