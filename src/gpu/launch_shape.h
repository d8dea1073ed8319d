// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpcache::gpu {

// Blocks and their threads.
struct LaunchShape {
  uint32_t blocks;
  uint32_t threads;
};

}  // namespace warpcache::gpu
