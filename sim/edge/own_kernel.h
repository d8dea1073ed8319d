// SPDX-License-Identifier: Apache-2.0
// A kernel of the user's own: PTX, its launch, and buffers to run it on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "edge/cases.h"
#include "edge/ptx.h"

namespace warpcache::edge_sim {

struct OwnKernel {
  std::string path;                       // of a file that nvcc --ptx has written
  std::string entry;                      // which of its kernels; empty: its only one
  std::string grid = "1", block = "128";  // X or X:Y
  // In the order of the parameters: floats:COUNT, ints:COUNT:BELOW, zeros:BYTES (buffers), int:N,
  // long:N, float:X.
  std::vector<std::string> arguments;
  uint32_t registers = 0;  // a thread; 0: 32
};

// Reads the file into *kernels and makes a case of it, with contents by `seed`. False: `why`.
bool make_own_case(const OwnKernel& own, uint64_t seed, std::map<std::string, Kernel>* kernels,
                   Case* out, std::string* why);

}  // namespace warpcache::edge_sim
