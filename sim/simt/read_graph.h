// SPDX-License-Identifier: Apache-2.0
// From DOT to a control-flow graph: plain graphs (the dissertation's three inputs, section 3.2) and
// what `nvdisasm -bbcfg` or `-cfg` writes of a kernel.
#ifndef WARPCACHE_SIM_SIMT_READ_GRAPH_H_
#define WARPCACHE_SIM_SIMT_READ_GRAPH_H_

#include <string>

#include "simt/dot.h"
#include "simt/graph.h"

namespace warpcache::simt {

// Whether the nodes are records of disassembled instructions.
bool is_disassembly(const DotGraph& dot);

// A plain graph. A block's instructions are its attribute `instructions`, or the number after the
// last '-' of its label ("B-12"), else 1. An edge's attribute `probability` becomes its weight. The
// entry is the node with the attribute `entry`, else the first without predecessors, else the
// first. Blocks without successors end the thread. False: `why` says what is wrong.
bool read_plain_graph(const DotGraph& dot, Graph* out, std::string* why);

// A function per cluster, the instructions as the records list them. Hyperblocks (-cfg) are cut
// where branches leave them, so that both forms give the same blocks.
bool read_disassembly(const DotGraph& dot, Graph* out, std::string* why);

// Either, by what the text is.
bool read_graph(std::string_view text, Graph* out, std::string* why);

// Takes the instructions per block from a second DOT file. Its blocks must be the graph's.
bool read_instructions(std::string_view text, Graph* graph, std::string* why);

// The graph as DOT, which read_plain_graph() reads.
std::string to_dot(const Graph& graph);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_READ_GRAPH_H_
