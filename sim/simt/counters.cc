// SPDX-License-Identifier: Apache-2.0
#include "simt/counters.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "simt/model.h"

namespace warpcache::simt {
namespace {

constexpr double kLanes = 32;
constexpr uint64_t kOddOnesMax = 1000;  // 1 of kOddOnesMax threads may differ from the others

struct Counts {
  uint64_t warps = 0;
  uint64_t threads = 0;
  uint64_t predicated_on = 0;
  uint64_t divergent = 0;  // of `warps`
};

using CountsByAddress = std::unordered_map<uint64_t, Counts>;

// Cells of one line; quotes may hold commas, and quotes twice.
std::vector<std::string> cells(std::string_view line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') {
        out.back() += line[++i];
      } else {
        quoted = !quoted;
      }
    } else if (line[i] == ',' && !quoted) {
      out.emplace_back();
    } else if (line[i] != '\r') {
      out.back() += line[i];
    }
  }
  return out;
}

// With or without separators between thousands.
bool parse_count(std::string text, int base, uint64_t* out) {
  std::erase(text, ',');
  if (base == 16 && text.starts_with("0x")) text.erase(0, 2);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out, base);
  return error == std::errc() && end == text.data() + text.size();
}

class Table {
 public:
  bool read(std::string_view csv, std::string* why) {
    for (uint32_t number = 1; !csv.empty(); ++number) {
      const size_t end = std::min(csv.find('\n'), csv.size());
      const std::vector<std::string> row = cells(csv.substr(0, end));
      csv.remove_prefix(std::min(end + 1, csv.size()));
      if (columns_.empty()) {
        find_columns(row);
      } else if (row.size() > 1 && !add(row)) {
        *why = fmt::format("line {}: not an address and its counts", number);
        return false;
      }
    }
    if (counts.empty()) *why = "it has no table with the columns that are needed";
    return !counts.empty();
  }

  CountsByAddress counts;  // by the distance from the first row
  bool has_divergence = false;

 private:
  static constexpr const char* kNames[] = {"Address", "Instructions Executed",
                                           "Thread Instructions Executed",
                                           "Predicated-On Thread Instructions Executed"};

  void find_columns(const std::vector<std::string>& row) {
    std::vector<size_t> found;
    for (const char* name : kNames) {
      const auto at = std::find(row.begin(), row.end(), name);
      if (at == row.end()) return;
      found.push_back(static_cast<size_t>(at - row.begin()));
    }
    columns_ = found;
    const auto divergence = std::find(row.begin(), row.end(), "Divergent Branches");
    has_divergence = divergence != row.end();
    divergence_ = static_cast<size_t>(divergence - row.begin());
  }

  bool add(const std::vector<std::string>& row) {
    uint64_t value[4];
    for (size_t i = 0; i < 4; ++i) {
      if (columns_[i] >= row.size() ||
          !parse_count(row[columns_[i]], i == 0 ? 16 : 10, &value[i])) {
        return false;
      }
    }
    uint64_t divergent = 0;
    if (has_divergence &&
        (divergence_ >= row.size() || !parse_count(row[divergence_], 10, &divergent))) {
      return false;
    }
    if (counts.empty()) base_ = value[0];
    counts[value[0] - base_] = {value[1], value[2], value[3], divergent};
    return true;
  }

  std::vector<size_t> columns_;
  size_t divergence_ = 0;
  uint64_t base_ = 0;
};

// How often a warp of `lanes` parts at a branch that is taken with probability `taken`, if each
// lane follows its warp's outcome with probability `follows`.
double part_probability(double taken, double lanes, double follows) {
  const auto whole = [&](double outcome) {
    const double same = follows + (1 - follows) * outcome;
    const double other = (1 - follows) * (1 - outcome);
    return outcome * (std::pow(same, lanes) + std::pow(other, lanes));
  };
  return 1 - whole(taken) - whole(1 - taken);
}

// BranchModel::rho of a branch at which `divergent` of its warps have parted.
double correlation_of(const Counts& branch) {
  const double warps = static_cast<double>(branch.warps);
  const double lanes = static_cast<double>(branch.threads) / warps;
  const double taken =
      static_cast<double>(branch.predicated_on) / static_cast<double>(branch.threads);
  const double parted = static_cast<double>(branch.divergent) / warps;
  double low = 0;
  double high = 1;
  if (parted >= part_probability(taken, lanes, 0)) return 0;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (part_probability(taken, lanes, middle) > parted ? low : high) = middle;
  }
  return high * high;
}

// Those that `function` calls, itself included: its section's.
std::vector<bool> functions_called(const Graph& graph, uint32_t function) {
  std::vector<bool> called(graph.functions.size());
  called[function] = true;
  for (bool more = true; more;) {
    more = false;
    for (const Block& block : graph.blocks) {
      if (block.call == kNone || !called[block.function] || called[block.call]) continue;
      called[block.call] = more = true;
    }
  }
  return called;
}

// How many threads went each way. A block's own count is both what came to it and what left it, so
// a way that is the only unknown one of a block follows from the others. Where that leaves
// something open, the threads for which a branch's guard held are those that took it; with a
// condition beside the guard ("@!P0 BRA P1", "BRA.DIV") this would say too much.
class Flow {
 public:
  Flow(const Graph& graph, const CountsByAddress& counts)
      : threads_(graph.blocks.size(), kUnknown), came_from_(graph.blocks.size()) {
    for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
      const Block& block = graph.blocks[b];
      const auto found = counts.find(block.address);
      if (found != counts.end()) threads_[b] = static_cast<int64_t>(found->second.threads);
      ways_.emplace_back(block.successors.size(), kUnknown);
      for (size_t i = 0; i < block.successors.size(); ++i) {
        if (is_block(block.successors[i])) came_from_[block.successors[i]].push_back(&ways_[b][i]);
      }
    }
    // Calls come to functions as well.
    for (const Function& function : graph.functions) came_from_[function.entry].clear();
    while (settle()) {
    }
  }
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // Of the block's ways the one with this number; `guess` where that is open.
  uint64_t threads_on(uint32_t block, size_t way, uint64_t guess) const {
    const int64_t threads = ways_[block][way];
    return threads == kUnknown ? guess : static_cast<uint64_t>(threads);
  }

 private:
  static constexpr int64_t kUnknown = -1;

  bool settle() {
    bool more = false;
    for (uint32_t b = 0; b < threads_.size(); ++b) {
      if (threads_[b] == kUnknown) continue;
      std::vector<int64_t*> left;
      for (int64_t& way : ways_[b]) left.push_back(&way);
      more = settle_last(threads_[b], left) || settle_last(threads_[b], came_from_[b]) || more;
    }
    return more;
  }

  // Whether there was exactly one that was not known.
  static bool settle_last(int64_t all, const std::vector<int64_t*>& ways) {
    int64_t* open = nullptr;
    for (int64_t* way : ways) {
      if (*way != kUnknown) {
        all -= *way;
      } else if (all == 0 || open == nullptr) {
        open = way;
      } else {
        return false;
      }
    }
    if (open == nullptr) return false;
    *open = std::max<int64_t>(all, 0);
    return true;
  }

  std::vector<int64_t> threads_;                  // by block
  std::deque<std::vector<int64_t>> ways_;         // by block and successor
  std::vector<std::vector<int64_t*>> came_from_;  // the ways that lead to a block
};

// How often warps stay in a loop if they always stay as often: no warp has parted at the branch
// that leaves it, all iterations come to that branch, and the mean is a whole number. 0: not so.
uint64_t constant_trips(const Graph& graph, const Loops& loops, uint32_t number,
                        const Counts& branch, const CountsByAddress& counts) {
  const uint32_t loop = loops.left_at(graph, number);
  if (loop == kNone || branch.divergent != 0) return 0;
  const Block& header = graph.blocks[loops.loops[loop].header];
  const auto found = counts.find(header.address);
  if (found == counts.end() || found->second.threads != branch.threads) return 0;
  const bool stays = loops.holds(loop, graph.blocks[number].successors[1]);
  const uint64_t staying = stays ? branch.predicated_on : branch.threads - branch.predicated_on;
  const uint64_t leaving = branch.threads - staying;
  if (leaving == 0) return 0;
  const uint64_t trips = (staying + leaving / 2) / leaving;
  const uint64_t off =
      staying > trips * leaving ? staying - trips * leaving : trips * leaving - staying;
  return off * kOddOnesMax <= leaving ? trips : 0;
}

nlohmann::ordered_json branch_json(const Graph& graph, const Loops& loops, uint32_t number,
                                   const Table& table, const Flow& flow) {
  const Block& block = graph.blocks[number];
  const CountsByAddress& counts = table.counts;
  nlohmann::ordered_json json;
  const auto found = counts.find(block.address);
  if (found == counts.end() || found->second.threads == 0) return json;
  Counts branch = found->second;
  json["address"] = block.address;
  json["warps"] = branch.warps;
  if (block.successors.size() == 2) {
    branch.predicated_on =
        std::min(flow.threads_on(number, 1, branch.predicated_on), branch.threads);
    json["to"][successor_name(graph, block.successors[0])] = branch.threads - branch.predicated_on;
    json["to"][successor_name(graph, block.successors[1])] = branch.predicated_on;
    if (block.vote != kNone) json["vote"] = successor_name(graph, block.successors[block.vote]);
    if (!table.has_divergence) return json;
    json["rho"] = correlation_of(branch);
    const uint64_t trips = constant_trips(graph, loops, number, branch, counts);
    if (trips > 0) json["trips"] = trips;
    for (size_t way = 0; way < 2 && branch.divergent == branch.warps; ++way) {
      const uint64_t threads =
          way == 1 ? branch.predicated_on : branch.threads - branch.predicated_on;
      if (threads == branch.warps && branch.threads > 2 * branch.warps) {
        json["one"] = successor_name(graph, block.successors[way]);
      }
    }
    return json;
  }
  uint64_t sum = 0;
  for (const uint32_t to : block.successors) {
    const auto target = is_block(to) ? counts.find(graph.blocks[to].address) : counts.end();
    const uint64_t threads = target == counts.end() ? 0 : target->second.threads;
    json["to"][successor_name(graph, to)] = threads;
    sum += threads;
  }
  return sum == 0 ? nlohmann::ordered_json() : json;
}

}  // namespace

bool profile_of_counters(std::string_view csv, const Graph& graph, uint32_t function,
                         CounterProfile* out, std::string* why) {
  Table table;
  if (!table.read(csv, why)) return false;
  double warps = 0;
  double threads = 0;
  for (const auto& [address, counts] : table.counts) {
    if (counts.predicated_on > counts.threads) {
      *why = fmt::format("offset {:#x}: more threads under the predicate than in all", address);
      return false;
    }
    warps += static_cast<double>(counts.warps);
    threads += static_cast<double>(counts.threads);
  }
  if (warps == 0) {
    *why = "nothing was executed";
    return false;
  }
  out->measured_ratio_of_sums = threads / (kLanes * warps);
  nlohmann::ordered_json json = {{"format", "warpcache-branch-profile-1"}, {"source", "counters"}};
  const std::vector<bool> called = functions_called(graph, function);
  const Flow flow(graph, table.counts);
  const Loops loops = find_loops(graph);
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
    const Block& block = graph.blocks[b];
    if (block.successors.size() < 2 || !called[block.function]) continue;
    const auto branch = branch_json(graph, loops, b, table, flow);
    if (!branch.empty()) json["branches"][block.name] = branch;
  }
  if (!json.contains("branches")) {
    *why = "none of its addresses is a branch of the graph (was it written with -poff?)";
    return false;
  }
  out->json = json.dump(1) + "\n";
  return true;
}

}  // namespace warpcache::simt
