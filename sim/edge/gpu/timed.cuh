// SPDX-License-Identifier: Apache-2.0
// Each kernel twice: as edge-sim records it, and with the clock of its SM around it.
#pragma once

#include <cstdint>

namespace warpcache::edge_sim {

struct BlockTime {
  unsigned long long begin, end;  // of the SM's clock: the first warp's begin, the last one's end
  unsigned int sm;
};

inline constexpr int kBlocksTimedMax = 16384;
__device__ BlockTime edge_times[kBlocksTimedMax];

__device__ __forceinline__ unsigned int edge_block() { return blockIdx.y * gridDim.x + blockIdx.x; }
__device__ __forceinline__ bool edge_leads() {
  return (threadIdx.y * blockDim.x + threadIdx.x) % 32 == 0;
}

}  // namespace warpcache::edge_sim

#define EDGE_KERNEL(NAME, PARAMETERS, ARGUMENTS)                        \
  extern "C" __global__ void NAME PARAMETERS { NAME##_body ARGUMENTS; } \
  extern "C" __global__ void NAME##_timed PARAMETERS {                  \
    BlockTime& time = edge_times[edge_block()];                         \
    const unsigned long long begin = clock64();                         \
    NAME##_body ARGUMENTS;                                              \
    __syncwarp();                                                       \
    const unsigned long long end = clock64();                           \
    if (edge_leads()) {                                                 \
      asm("mov.u32 %0, %%smid;" : "=r"(time.sm));                       \
      atomicMin(&time.begin, begin);                                    \
      atomicMax(&time.end, end);                                        \
    }                                                                   \
  }

#include "edge/kernels/kernels.cuh"
