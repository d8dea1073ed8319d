// SPDX-License-Identifier: Apache-2.0
// Recorded threads: the blocks that each one executed. A replay in lock step gives the efficiency
// of exactly these threads; counts of their branches give a branch profile.
#ifndef WARPCACHE_SIM_SIMT_TRACE_H_
#define WARPCACHE_SIM_SIMT_TRACE_H_

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "simt/analysis.h"
#include "simt/estimate.h"
#include "simt/graph.h"
#include "simt/warp.h"

namespace warpcache::simt {

// A thread's class is an index into Traces::classes.
struct ThreadTrace {
  uint32_t thread_class;
  std::vector<uint32_t> blocks;
};

struct Traces {
  std::vector<std::string> classes;
  std::vector<ThreadTrace> threads;
};

// Lines "CLASS BLOCK BLOCK ...", blocks by their names, threads in the order in which warps take
// them; '#' begins a comment. Each must begin at `function`'s entry and follow the graph's edges to
// the end. False: `why` names the line.
bool read_traces(std::istream& in, const Graph& graph, uint32_t function, Traces* out,
                 std::string* why);

// `count` threads drawn from those recorded, each of a class by its weight and then any of that
// class. With `class_rho` lanes of a warp are of one class more often than by chance, see
// Model::class_rho. False: `why` says that a class has weight and no thread.
struct Draw {
  uint64_t count;
  uint32_t warp_size;
  uint64_t seed;
  double class_rho;
};
bool draw_threads(const Traces& from, const std::vector<double>& weights, const Draw& draw,
                  Traces* out, std::string* why);

// Observes the branches that the warps of a replay execute.
class BranchObserver {
 public:
  virtual ~BranchObserver() = default;
  virtual void branch(uint32_t block, LaneMask lanes, const LaneMask* parts) = 0;
};

// Warps of `options.warp_size` threads in their order, the last perhaps smaller. `observer` may be
// null. False: `why` says that the machine and the traces do not agree.
bool replay(const Graph& graph, const Traces& traces, const RunOptions& options,
            const EdgeSet& taken, BranchObserver* observer, Result* out, std::string* why);

// Which edges the threads took.
EdgeSet edges_taken(const Graph& graph, const Traces& traces);

struct ProfileOptions {
  std::string source;  // for the reader
  // Only how often each branch goes where, as the dissertation's profiles: no loops by iteration,
  // no correlation.
  bool plain = false;
};

// A branch profile of the traces, as read_model() reads it: counts by threads and by warps of
// `run.warp_size`, loops by iteration, correlations, and all of it per class. Blocks without a
// choice are left out.
bool profile_of(const Graph& graph, const Loops& loops, const Traces& traces, const RunOptions& run,
                const ProfileOptions& options, std::string* json, std::string* why);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_TRACE_H_
