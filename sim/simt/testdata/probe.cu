// SPDX-License-Identifier: Apache-2.0
//
// Small kernels whose machine code shows what cfg-sim must read: divergent branches with and
// without BSSY/BSYNC, early exits under predicates, calls, jump tables, WARPSYNC. Recorded for
// sm_90 with
//   nvcc -std=c++20 -O3 -arch=sm_90 -cubin -o probe.cubin probe.cu   (CUDA 13.0)
//   nvdisasm -bbcfg -poff probe.cubin > probe_bbcfg.dot              (nvdisasm 13.2.51)
//   nvdisasm -cfg -poff probe.cubin > probe_cfg.dot
#include <cstdint>

extern "C" {

// Early exit, then a divergent if/else whose sides are too long to predicate.
__global__ void branch(uint32_t* data, uint32_t count) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t x = data[i];
  if ((x & 1) != 0) {
    for (uint32_t k = 0; k < (x & 15); ++k) x = x * 0x9e3779b1u + data[(x ^ k) % count];
  } else {
    for (uint32_t k = 0; k < (x & 7); ++k) x ^= data[(x + k) % count] >> 3;
  }
  data[i] = x;
}

// A loop whose length is data.
__global__ void scan(const uint8_t* text, const uint32_t* start, uint32_t* length, uint32_t count) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t n = 0;
#pragma unroll 1
  while (text[start[i] + n] > ' ') ++n;
  length[i] = n;
}

__device__ __noinline__ uint32_t mix(uint32_t x, uint32_t rounds) {
#pragma unroll 1
  for (uint32_t k = 0; k < rounds; ++k) x = (x ^ (x >> 15)) * 0x2c1b3c6du;
  return x;
}

// Two calls of one function.
__global__ void call(uint32_t* data) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t x = data[i];
  if ((x & 3) == 0) x = mix(x, x & 31);
  data[i] = mix(x, 5);
}

// A switch that becomes a jump table.
__global__ void table(uint32_t* data, const uint32_t* op) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t x = data[i];
  switch (op[i]) {
    case 0:
      x = x * x + data[x & 63];
      break;
    case 1:
      x = data[(x >> 3) & 63] ^ (x << 7);
      break;
    case 2:
      x = x / (data[x & 31] | 1);
      break;
    case 3:
      x = x % (data[x & 15] | 3);
      break;
    case 4:
      x = __popc(x) + data[(x >> 9) & 63];
      break;
    case 5:
      x = __brev(x) * data[(x >> 1) & 63];
      break;
    case 6:
      atomicAdd(&data[x & 7], x);
      break;
    case 7:
      x = __clz(x | data[64 + (x & 7)]);
      break;
    default:
      x = 0;
      break;
  }
  data[i] = x;
}

// Barriers of a warp and of a block inside divergent code's neighbourhood.
__global__ void warp(uint32_t* data) {
  __shared__ uint32_t cell[256];
  const uint32_t i = threadIdx.x;
  uint32_t x = data[i];
  if ((x & 1) != 0) {
#pragma unroll 1
    for (uint32_t k = 0; k < (x & 15); ++k) x = x * 5 + data[x & 255];
  }
  __syncwarp();
  cell[i] = x;
  __syncthreads();
  if (i < 128 && (x & 2) != 0) x += __shfl_down_sync(__activemask(), x, 1);
  data[i] = x + cell[255 - i];
}

}  // extern "C"
