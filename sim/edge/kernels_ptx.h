// SPDX-License-Identifier: Apache-2.0
// The PTX of the named kernels, built into the program.
#pragma once

namespace warpcache::edge_sim {

extern const char* const kKernelsPtx;

}  // namespace warpcache::edge_sim
