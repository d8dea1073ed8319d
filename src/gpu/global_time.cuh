// SPDX-License-Identifier: Apache-2.0
//
// Device code. The simulated GPU has a file of its own in the place of this one.
#pragma once

#include <cstdint>

namespace warpcache::gpu {

// Nanoseconds of a clock that all multiprocessors share.
__device__ inline uint64_t global_time_ns() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

}  // namespace warpcache::gpu
