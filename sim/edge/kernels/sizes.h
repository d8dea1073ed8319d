// SPDX-License-Identifier: Apache-2.0
// What kernels and the programs that prepare their input agree on.
#pragma once

namespace warpcache::edge_sim {

inline constexpr int kTile = 16;       // matmul, conv, stencil: blocks of 16 x 16 threads
inline constexpr int kFilterSide = 5;  // conv
inline constexpr int kFilters = 4;     // conv: filters that one thread applies
inline constexpr int kReduceThreads = 256;
inline constexpr int kReduceItems = 8;  // elements that one thread adds
inline constexpr int kNeedleSide = 32;  // needle: one warp fills a tile of 32 x 32
inline constexpr int kIsrRegisters = 8;

// One state of a suffix automaton over four letters.
struct MatchState {
  int next[4];  // -1: none
  int link;
  int length;
};

struct Sphere {
  float x, y, z, radius_squared;
};

}  // namespace warpcache::edge_sim
