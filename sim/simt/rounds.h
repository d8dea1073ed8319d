// SPDX-License-Identifier: Apache-2.0
// Lanes of a warp that share a buffer: in the order of lanes, those whose pieces fit are served,
// and the others in further rounds. The number of rounds and the round of each lane depend on all
// sizes.
#ifndef WARPCACHE_SIM_SIMT_ROUNDS_H_
#define WARPCACHE_SIM_SIMT_ROUNDS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace warpcache::simt {

struct Rounds {
  double capacity = 0;       // of the buffer; 0: there is none
  std::vector<double> size;  // of a lane's piece, by class; 0: a lane that wants none
};

// The round of each lane, from 1; 0: of a lane that wants none. `size`: per lane. REQUIRES: no size
// is above the capacity.
std::vector<uint32_t> rounds_of(double capacity, const std::vector<double>& size);

// Marks in a profile of several classes (merge_profiles()) the branches at which a lane goes one
// way in its round and another one otherwise, and the votes by which a warp goes on while rounds
// are left: those where each class that wants a piece goes so in one of as many rounds as a warp of
// it alone takes. `sizes`: by class. False: `why` says what does not fit; no branch at all is such.
bool mark_rounds(double capacity, const std::vector<std::pair<std::string, double>>& sizes,
                 std::string* json, std::string* why);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_ROUNDS_H_
