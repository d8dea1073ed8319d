// SPDX-License-Identifier: Apache-2.0
// How a kernel is started: its grid, its blocks and the bytes of its parameters.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace warpcache::edge_sim {

struct Launch {
  uint32_t grid_x = 1, grid_y = 1;
  uint32_t block_x = 32, block_y = 1;
  std::vector<uint8_t> parameters;  // as the kernel's parameter space

  template <typename T>
  void push(const T& value) {
    const size_t at = (parameters.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    parameters.resize(at + sizeof(T));
    std::memcpy(parameters.data() + at, &value, sizeof(T));
  }
};

}  // namespace warpcache::edge_sim
