// SPDX-License-Identifier: Apache-2.0
// Learns the behaviour of classes that shows only in mixed warps, from the counts of a mixture:
// where a warp branches as a whole, lanes reach branches that they never reach in warps of their
// own class.
#ifndef WARPCACHE_SIM_SIMT_UNMIX_H_
#define WARPCACHE_SIM_SIMT_UNMIX_H_

#include <string>
#include <utility>
#include <vector>

#include "simt/graph.h"

namespace warpcache::simt {

struct Mixture {
  std::string profile;  // JSON, without classes
  // What it was made of, by name; of a class that merge_profiles() has seen no profile of, all is
  // learned here.
  std::vector<std::pair<std::string, double>> shares;
};

// Adds to `json`, which merge_profiles() has made. Of each branch, the mixture's threads less those
// of the classes whose own profiles tell what they do there are those of the other classes. Which
// way a warp's vote goes is the mixture's, for all classes. False: `why` says what does not fit.
bool learn_from_mixture(const Graph& graph, uint32_t function, const Mixture& mixture,
                        std::string* json, std::string* why);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_UNMIX_H_
