// SPDX-License-Identifier: Apache-2.0
//
// Event kernels that the scheduler launches from the device: a graph for each entry of a queue,
// since a graph whose last run has not ended cannot be launched again.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "edge/program.h"

namespace warpcache::edge {

class GraphLaunches {
 public:
  // Returns the error as text, or "". Without nvcc there are none.
  static std::string create(const edge_program& program, const View& view, cudaStream_t stream,
                            std::unique_ptr<GraphLaunches>* launches);
  virtual ~GraphLaunches() = default;

  // Makes the graphs of an event, and destroys those of the event that had its number before.
  // REQUIRES: the scheduler does not run; to destroy a graph CUDA waits for its end.
  virtual std::string add_event(uint32_t event, const EventEntry& entry) = 0;
  // Starts the scheduler.
  virtual std::string start() = 0;
};

}  // namespace warpcache::edge
