// SPDX-License-Identifier: Apache-2.0
// Reads the DOT language: nodes, edges and their attributes. What only matters for drawing
// (defaults, graph attributes) is read over.
#ifndef WARPCACHE_SIM_SIMT_DOT_H_
#define WARPCACHE_SIM_SIMT_DOT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace warpcache::simt {

using DotAttributes = std::map<std::string, std::string>;

struct DotNode {
  std::string name;
  std::string subgraph;  // the innermost that mentions the node first; empty: none
  DotAttributes attributes;
};

struct DotEdge {
  std::string from, from_port, from_side;
  std::string to;
  DotAttributes attributes;
};

// Nodes in the order of their first mention, edges in their own.
struct DotGraph {
  std::vector<DotNode> nodes;
  std::vector<DotEdge> edges;
};

// False where `text` is no directed graph; `why` then names the line. Strings keep their escapes,
// except for quotes.
bool parse_dot(std::string_view text, DotGraph* out, std::string* why);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_DOT_H_
