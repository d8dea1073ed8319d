// SPDX-License-Identifier: Apache-2.0
//
// What the threads of a block do together: sums, copies over the bus and in device memory. Device
// code; all threads of the block call every function.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace warpcache::gpu {

inline constexpr uint32_t kWarpSize = 32;

__device__ inline uint32_t lane_id() { return threadIdx.x % kWarpSize; }
__device__ inline uint32_t warp_id() { return threadIdx.x / kWarpSize; }

// The sum of `value` over the threads before this one. `sums` is shared, one a warp; `total` gets
// the sum over all.
__device__ inline uint32_t sum_before(uint32_t value, uint32_t* sums, uint32_t* total) {
  uint32_t sum = value;
  for (uint32_t step = 1; step < kWarpSize; step *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, sum, step);
    if (lane_id() >= step) sum += other;
  }
  if (lane_id() == kWarpSize - 1)
    sums[warp_id()] = sum;  // its own warp has read it: see the shuffles
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t before = 0;
    for (uint32_t i = 0; i < blockDim.x / kWarpSize; ++i) {
      const uint32_t own = sums[i];
      sums[i] = before;
      before += own;
    }
    *total = before;
  }
  __syncthreads();
  return sums[warp_id()] + sum - value;
}

// Returns the same pointer, which the compiler may now assume not to lead to shared memory.
template <typename T>
__device__ T* in_global(T* pointer) {
  __builtin_assume(__isGlobal(pointer));
  return pointer;
}

// Loads from pinned host memory, bypassing all caches: the host writes there again and again.
__device__ inline uint4 load_from_host(const uint4* from) { return __ldcv(from); }

// Copies [low, high) of the host's buffer to the same place of its copy. Both begin at a multiple
// of 16 bytes. Writes no byte outside the range. Called by `threads` threads; this one has the
// number `me`.
__device__ inline void copy_in(uint8_t* to, const uint8_t* from, uint32_t low, uint32_t high,
                               uint32_t me, uint32_t threads) {
  const uint32_t first = (low + 15) / 16 * 16;
  const uint32_t last = high / 16 * 16;
  if (first >= last) {
    for (uint32_t at = low + me; at < high; at += threads) {
      to[at] = *static_cast<const volatile uint8_t*>(from + at);
    }
    return;
  }
  constexpr uint32_t kBatch = 4;  // loads in progress at the same time
  const uint32_t stride = threads * 16;
  for (uint32_t at = first + me * 16; at < last; at += stride * kBatch) {
    uint4 words[kBatch];
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      words[i] = {0, 0, 0, 0};  // without it the old value would be kept, and loads would wait for
                                // each other
      if (at + i * stride < last) {
        words[i] = load_from_host(reinterpret_cast<const uint4*>(from + at + i * stride));
      }
    }
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      if (at + i * stride < last) *reinterpret_cast<uint4*>(to + at + i * stride) = words[i];
    }
  }
  for (uint32_t at = low + me; at < first; at += threads) {
    to[at] = *static_cast<const volatile uint8_t*>(from + at);
  }
  for (uint32_t at = last + me; at < high; at += threads) {
    to[at] = *static_cast<const volatile uint8_t*>(from + at);
  }
}

// Copies [low, high) of the device's copy to the same place of the host's buffer, in whole words of
// 16 bytes. REQUIRES: low is a multiple of 16; up to 15 bytes after `high` may be overwritten.
// Called like copy_in().
__device__ inline void copy_out(uint8_t* to, const uint8_t* from, uint32_t low, uint32_t high,
                                uint32_t me, uint32_t threads) {
  for (uint32_t at = low + me * 16; at < high; at += threads * 16) {
    __stcs(reinterpret_cast<uint4*>(to + at), *reinterpret_cast<const uint4*>(from + at));
  }
}

// Copies bytes with all lanes of a warp; returns the end. Called by a whole warp.
__device__ inline uint8_t* warp_put(uint8_t* out, Bytes bytes) {
  for (size_t at = lane_id(); at < bytes.size; at += kWarpSize) out[at] = bytes.data[at];
  return out + bytes.size;
}

}  // namespace warpcache::gpu
