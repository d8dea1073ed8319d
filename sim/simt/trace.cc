// SPDX-License-Identifier: Apache-2.0
#include "simt/trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>
#include <unordered_map>

#include "workload/random.h"

namespace warpcache::simt {
namespace {

using Index = std::unordered_map<std::string, uint32_t>;

bool leads_to(const Block& block, uint32_t to) {
  return std::find(block.successors.begin(), block.successors.end(), to) != block.successors.end();
}

// Whether a thread may end after `from`.
bool may_end(const Block& from) { return leads_to(from, kExit) || leads_to(from, kReturn); }

bool parse_line(const std::string& line, const Graph& graph, const Index& index, uint32_t entry,
                Traces* out, std::string* why) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  const auto known = std::find(out->classes.begin(), out->classes.end(), word);
  ThreadTrace thread;
  thread.thread_class = static_cast<uint32_t>(known - out->classes.begin());
  if (known == out->classes.end()) out->classes.push_back(word);
  while (words >> word) {
    const auto block = index.find(word);
    const bool follows =
        block != index.end() &&
        (thread.blocks.empty() ? block->second == entry
                               : leads_to(graph.blocks[thread.blocks.back()], block->second));
    if (!follows) {
      *why = fmt::format("{} does not follow from what stands before it", word);
      return false;
    }
    thread.blocks.push_back(block->second);
  }
  if (thread.blocks.empty() || !may_end(graph.blocks[thread.blocks.back()])) {
    *why = "the thread does not end";
    return false;
  }
  out->threads.push_back(std::move(thread));
  return true;
}

size_t pick(const std::vector<double>& weights, bench::Random& random) {
  double point = random.next_unit();
  size_t last = 0;
  for (size_t c = 0; c < weights.size(); ++c) {
    if (weights[c] == 0) continue;
    last = c;
    point -= weights[c];
    if (point < 0) break;
  }
  return last;
}

// Lanes do what their threads did.
class Replayer final : public Decider {
 public:
  Replayer(const Graph& graph, const Traces& traces, BranchObserver* observer)
      : graph_(graph), traces_(traces), observer_(observer) {}

  void begin_warp(size_t first) {
    first_ = first;
    std::fill(std::begin(next_), std::end(next_), 0);
  }

  bool agrees() const { return agrees_; }

  void enter(uint32_t block, LaneMask lanes) override {
    for (; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
      agrees_ = agrees_ && at(lane) == block;
      ++next_[lane];
    }
  }

  void decide(uint32_t block, LaneMask lanes, LaneMask* parts) override {
    const auto& successors = graph_.blocks[block].successors;
    std::fill(parts, parts + successors.size(), 0);
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(left));
      size_t way = 0;
      while (way < successors.size() && successors[way] != at(lane)) ++way;
      agrees_ = agrees_ && way < successors.size();
      parts[std::min(way, successors.size() - 1)] |= LaneMask{1} << lane;
    }
    if (observer_ != nullptr) observer_->branch(block, lanes, parts);
  }

 private:
  uint32_t at(uint32_t lane) const {
    const auto& blocks = traces_.threads[first_ + lane].blocks;
    return next_[lane] < blocks.size() ? blocks[next_[lane]] : kExit;
  }

  const Graph& graph_;
  const Traces& traces_;
  BranchObserver* observer_;
  size_t first_ = 0;
  size_t next_[kLanesMax] = {};  // per lane, the next of its thread's blocks
  bool agrees_ = true;
};

}  // namespace

bool read_traces(std::istream& in, const Graph& graph, uint32_t function, Traces* out,
                 std::string* why) {
  *out = {};
  Index index;
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) index[graph.blocks[b].name] = b;
  const uint32_t entry = graph.functions[function].entry;
  std::string line;
  for (uint64_t number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    std::string what;
    if (parse_line(line, graph, index, entry, out, &what)) continue;
    *why = fmt::format("line {}: {}", number, what);
    return false;
  }
  if (out->threads.empty()) *why = "no threads";
  return !out->threads.empty();
}

bool draw_threads(const Traces& from, const std::vector<double>& weights, const Draw& draw,
                  Traces* out, std::string* why) {
  std::vector<std::vector<const ThreadTrace*>> of_class(from.classes.size());
  for (const ThreadTrace& thread : from.threads) of_class[thread.thread_class].push_back(&thread);
  for (size_t c = 0; c < weights.size(); ++c) {
    if (weights[c] == 0 || !of_class[c].empty()) continue;
    *why = "no thread of class " + from.classes[c];
    return false;
  }
  *out = {from.classes, {}};
  bench::Random random(draw.seed);
  const double follows = std::sqrt(draw.class_rho);
  size_t shared = 0;
  for (uint64_t i = 0; i < draw.count; ++i) {
    if (i % draw.warp_size == 0) shared = pick(weights, random);
    const size_t c = random.next_unit() < follows ? shared : pick(weights, random);
    out->threads.push_back(*of_class[c][random.next() % of_class[c].size()]);
  }
  return true;
}

bool replay(const Graph& graph, const Traces& traces, const RunOptions& options,
            const EdgeSet& taken, BranchObserver* observer, Result* out, std::string* why) {
  *out = {};
  out->warp_size = options.warp_size;
  out->tally = Tally(graph.blocks.size());
  const std::unique_ptr<Warp> warp = make_warp(graph, options, taken);
  Replayer replayer(graph, traces, observer);
  Accumulator sums(options.warp_size);
  for (size_t first = 0; first < traces.threads.size(); first += options.warp_size) {
    const auto lanes =
        static_cast<uint32_t>(std::min<size_t>(options.warp_size, traces.threads.size() - first));
    Tally tally(graph.blocks.size());
    replayer.begin_warp(first);
    if (!warp->run(options.function, first_lanes(lanes), replayer, tally, options.steps_max) ||
        !replayer.agrees()) {
      *why = fmt::format("warp {}: the machine and the traces do not agree",
                         first / options.warp_size);
      return false;
    }
    sums.add_pass(tally.instructions, tally.thread_instructions);
    out->tally.add(tally);
  }
  out->estimate = sums.estimate();
  return true;
}

EdgeSet edges_taken(const Graph& graph, const Traces& traces) {
  EdgeSet taken(graph.blocks.size());
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
    taken[b].assign(graph.blocks[b].successors.size(), graph.blocks[b].successors.size() == 1);
  }
  for (const ThreadTrace& thread : traces.threads) {
    for (size_t i = 0; i < thread.blocks.size(); ++i) {
      const Block& block = graph.blocks[thread.blocks[i]];
      const uint32_t to = i + 1 < thread.blocks.size() ? thread.blocks[i + 1] : kExit;
      for (size_t way = 0; way < block.successors.size(); ++way) {
        if (block.successors[way] == to) taken[thread.blocks[i]][way] = true;
      }
    }
  }
  return taken;
}

}  // namespace warpcache::simt
