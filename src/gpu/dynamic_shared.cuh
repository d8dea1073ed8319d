// SPDX-License-Identifier: Apache-2.0
//
// Device code. The simulated GPU has a file of its own in the place of this one.
#pragma once

#include <cstdint>

namespace warpcache::gpu {

// The block's dynamic shared memory, as large as the launch asked for; begins at a multiple of 16
// bytes.
__device__ inline uint8_t* dynamic_shared() {
  extern __shared__ __align__(16) uint8_t shared[];
  return shared;
}

}  // namespace warpcache::gpu
