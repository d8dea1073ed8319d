// SPDX-License-Identifier: Apache-2.0
#include "simt/read_graph.h"

#include <fmt/core.h>

#include <charconv>

namespace warpcache::simt {
namespace {

constexpr uint32_t kInstructionsMax = 1'000'000'000;

template <typename T>
bool parse_number(std::string_view text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// True and `found` unset where the node says nothing. False: it says something that is no count.
bool instructions_of(const DotNode& node, uint32_t* count, bool* found) {
  *count = 1;
  const auto attribute = node.attributes.find("instructions");
  *found = attribute != node.attributes.end();
  if (*found) return parse_number(attribute->second, count) && *count <= kInstructionsMax;
  const auto label = node.attributes.find("label");
  if (label == node.attributes.end()) return true;
  const size_t dash = label->second.rfind('-');
  if (dash == std::string::npos) return true;
  *found = parse_number(std::string_view(label->second).substr(dash + 1), count);
  return !*found || *count <= kInstructionsMax;
}

bool add_edge(const DotEdge& edge, uint32_t from, uint32_t to, Graph* out, std::string* why) {
  double weight = 1;
  const auto given = edge.attributes.find("probability");
  const bool is_given = given != edge.attributes.end();
  if (is_given && (!parse_number(given->second, &weight) || !(weight >= 0) || weight > 1)) {
    *why = fmt::format("edge {} -> {}: bad probability \"{}\"", edge.from, edge.to, given->second);
    return false;
  }
  Block& block = out->blocks[from];
  if (is_given && block.weights.size() != block.successors.size()) {
    *why = fmt::format("block {}: give each of its edges a probability, or none", block.name);
    return false;
  }
  block.successors.push_back(to);
  if (is_given) block.weights.push_back(weight);
  return true;
}

bool finish_block(Block* block, std::string* why) {
  if (!block->weights.empty() && block->weights.size() != block->successors.size()) {
    *why = fmt::format("block {}: give each of its edges a probability, or none", block->name);
    return false;
  }
  double sum = 0;
  for (const double weight : block->weights) sum += weight;
  if (!block->weights.empty() && (sum < 1 - 1e-6 || sum > 1 + 1e-6)) {
    *why = fmt::format("block {}: its probabilities make {}, not 1", block->name, sum);
    return false;
  }
  if (block->successors.empty()) block->successors.push_back(kExit);
  return true;
}

uint32_t plain_entry(const DotGraph& dot, const Graph& graph) {
  std::vector<bool> has_predecessor(graph.blocks.size());
  for (const Block& block : graph.blocks) {
    for (const uint32_t to : block.successors) {
      if (is_block(to)) has_predecessor[to] = true;
    }
  }
  for (uint32_t i = 0; i < dot.nodes.size(); ++i) {
    if (dot.nodes[i].attributes.contains("entry")) return i;
  }
  for (uint32_t i = 0; i < dot.nodes.size(); ++i) {
    if (!has_predecessor[i]) return i;
  }
  return 0;
}

}  // namespace

bool is_disassembly(const DotGraph& dot) {
  for (const DotNode& node : dot.nodes) {
    const auto label = node.attributes.find("label");
    if (label != node.attributes.end() && label->second.starts_with("{<entry>")) return true;
  }
  return false;
}

bool read_plain_graph(const DotGraph& dot, Graph* out, std::string* why) {
  *out = {};
  if (dot.nodes.empty()) {
    *why = "the graph has no blocks";
    return false;
  }
  std::unordered_map<std::string, uint32_t> index;
  for (const DotNode& node : dot.nodes) {
    index[node.name] = static_cast<uint32_t>(out->blocks.size());
    Block block;
    block.name = node.name;
    block.instructions = 1;
    bool found;
    if (!instructions_of(node, &block.instructions, &found)) {
      *why = fmt::format("block {}: bad number of instructions", node.name);
      return false;
    }
    out->blocks.push_back(block);
  }
  for (const DotEdge& edge : dot.edges) {
    if (!add_edge(edge, index[edge.from], index[edge.to], out, why)) return false;
  }
  for (Block& block : out->blocks) {
    if (!finish_block(&block, why)) return false;
  }
  out->functions.push_back({"main", plain_entry(dot, *out)});
  return true;
}

bool read_graph(std::string_view text, Graph* out, std::string* why) {
  DotGraph dot;
  if (!parse_dot(text, &dot, why)) return false;
  return is_disassembly(dot) ? read_disassembly(dot, out, why) : read_plain_graph(dot, out, why);
}

bool read_instructions(std::string_view text, Graph* graph, std::string* why) {
  DotGraph dot;
  if (!parse_dot(text, &dot, why)) return false;
  for (const DotNode& node : dot.nodes) {
    const uint32_t block = graph->find_block(node.name);
    uint32_t count;
    bool found;
    if (block == kNone || !instructions_of(node, &count, &found) || !found) {
      *why = fmt::format("{}: {}", node.name,
                         block == kNone ? "not a block of the graph" : "no number of instructions");
      return false;
    }
    graph->blocks[block].instructions = count;
  }
  return true;
}

std::string to_dot(const Graph& graph) {
  std::string out = "digraph \"" + graph.functions[0].name + "\" {\n";
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
    const char* entry = b == graph.functions[0].entry ? ", entry=1" : "";
    out += fmt::format("{} [instructions={}{}];\n", graph.blocks[b].name,
                       graph.blocks[b].instructions, entry);
  }
  for (const Block& block : graph.blocks) {
    for (const uint32_t to : block.successors) {
      if (is_block(to)) out += fmt::format("{} -> {};\n", block.name, graph.blocks[to].name);
    }
  }
  return out + "}\n";
}

}  // namespace warpcache::simt
