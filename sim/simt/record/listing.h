// SPDX-License-Identifier: Apache-2.0
// The control-flow graph of a function in a listing of objdump (x86-64).
#ifndef WARPCACHE_SIM_SIMT_RECORD_LISTING_H_
#define WARPCACHE_SIM_SIMT_RECORD_LISTING_H_

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "simt/graph.h"

namespace warpcache::simt {

struct Listing {
  Graph graph;                     // blocks named "b" and their distance from the beginning, in hex
  std::vector<uint32_t> block_at;  // by distance in bytes: the block that begins there, or kNone
  uint32_t size = 0;               // of the function, in bytes
};

// Reads what `objdump -d --no-show-raw-insn` writes, as far as `function` goes. Calls count as one
// instruction; those that do not return end the thread. False: `why` says what it cannot follow
// (jumps through registers).
bool read_listing(std::istream& in, const std::string& function, Listing* out, std::string* why);

// The blocks that a thread went through, from the distances of its instructions. A string
// instruction's repetitions count once. False: it went where the listing has no block.
bool blocks_of(const Listing& listing, const std::vector<uint32_t>& steps,
               std::vector<uint32_t>* blocks);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_RECORD_LISTING_H_
