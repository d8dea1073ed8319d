// SPDX-License-Identifier: Apache-2.0
#include "edge/graph_launches.h"

namespace warpcache::edge {

std::string GraphLaunches::create(const edge_program&, const View&, cudaStream_t,
                                  std::unique_ptr<GraphLaunches>*) {
  return "this build cannot launch graphs from the device: that needs nvcc";
}

}  // namespace warpcache::edge
