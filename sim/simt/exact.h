// SPDX-License-Identifier: Apache-2.0
// The ratio of sums, computed instead of sampled: the expected executions of every block by a warp
// and by its threads. An independent check: it shares neither the machine nor the sampler.
#ifndef WARPCACHE_SIM_SIMT_EXACT_H_
#define WARPCACHE_SIM_SIMT_EXACT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "simt/graph.h"
#include "simt/model.h"

namespace warpcache::simt {

// Per pass of a warp.
struct Expectation {
  double instructions = 0;         // that the warp executes
  double thread_instructions = 0;  // that its threads execute
  double ratio_of_sums = 0;
};

// For lanes that decide for themselves at each branch, by the same probabilities at all times, and
// meet at `post_dominators`. False: `why` says what the model or the graph has beyond that
// (classes, loops by iteration, correlation, calls, branches of more than two ways), or that it has
// no end.
bool expect(const Graph& graph, const std::vector<uint32_t>& post_dominators, const Model& model,
            uint32_t function, uint32_t warp_size, Expectation* out, std::string* why);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_EXACT_H_
