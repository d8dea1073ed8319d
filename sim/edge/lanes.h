// SPDX-License-Identifier: Apache-2.0
// How many of a warp's lanes work: of the recorded threads, and by cfg-sim's estimates from the
// kernel's graph (dissertation, figures 3.2 and 3.10).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "edge/trace.h"
#include "simt/trace.h"

namespace warpcache::edge_sim {

struct Histogram {
  double efficiency = 0;       // ratio of sums
  std::vector<double> shares;  // of the instructions, by active lanes 1-4, 5-8, ...
};

struct Lanes {
  Histogram recorded;   // as the interpreter executed the warps
  Histogram actual;     // the same threads, replayed by cfg-sim's machine
  Histogram equal;      // all branches equal (pessimistic)
  Histogram augmented;  // equal, but never what no thread did
  Histogram profiled;   // the measured probabilities
};

// REQUIRES: the trace has paths. False: `why`.
bool measure_lanes(const KernelTrace& trace, uint64_t passes, uint64_t seed, Lanes* out,
                   std::string* why);

// The recorded threads as cfg-sim reads them.
simt::Traces threads_of(const KernelTrace& trace);

}  // namespace warpcache::edge_sim
