// SPDX-License-Identifier: Apache-2.0
// Micro-benchmarks of one SM: latencies as chains of dependent instructions of one lane, and what
// the SM takes from its caches and memory at most.
#pragma once

#include <cstdint>

namespace warpcache::edge_sim {

inline constexpr int kChain = 1024;

struct MicroResult {
  unsigned long long cycles;
  unsigned long long value;  // keeps the compiler from dropping the work
};

__global__ void alu_chain(MicroResult* out, float x) {
  float value = x;
  const unsigned long long begin = clock64();
#pragma unroll 64
  for (int i = 0; i < kChain; ++i) value = fmaf(value, x, x);
  *out = {clock64() - begin, static_cast<unsigned long long>(value)};
}

__global__ void wide_chain(MicroResult* out, unsigned long long x) {
  unsigned long long value = x;
  const unsigned long long begin = clock64();
#pragma unroll 64
  for (int i = 0; i < kChain; ++i) value = value * x + 1;
  *out = {clock64() - begin, value};
}

__global__ void special_chain(MicroResult* out, float x) {
  float value = x;
  const unsigned long long begin = clock64();
#pragma unroll 64
  for (int i = 0; i < kChain; ++i) value = __fsqrt_rn(value);
  *out = {clock64() - begin, static_cast<unsigned long long>(value)};
}

__global__ void shared_chain(MicroResult* out) {
  __shared__ unsigned int next[256];
  for (unsigned int i = 0; i < 256; ++i) next[i] = (i * 4 + 36) % 1024;
  unsigned int at = 0;
  const unsigned long long begin = clock64();
#pragma unroll 16
  for (int i = 0; i < kChain; ++i)
    at = *reinterpret_cast<unsigned int*>(reinterpret_cast<char*>(next) + at);
  *out = {clock64() - begin, at};
}

// Pointers in memory, each to the next; `steps` of them after `warm` others.
__global__ void memory_chain(MicroResult* out, void** start, int warm, int steps) {
  void** at = start;
#pragma unroll 1
  for (int i = 0; i < warm; ++i) at = static_cast<void**>(*at);
  const unsigned long long begin = clock64();
#pragma unroll 1
  for (int i = 0; i < steps; i += 8) {
#pragma unroll
    for (int k = 0; k < 8; ++k) at = static_cast<void**>(*at);
  }
  *out = {clock64() - begin, reinterpret_cast<unsigned long long>(at)};
}

__global__ void barrier_chain(MicroResult* out) {
  const unsigned long long begin = clock64();
#pragma unroll 16
  for (int i = 0; i < kChain; ++i) __syncthreads();
  if (threadIdx.x == 0) *out = {clock64() - begin, 0};
}

// One block of 1024 threads reads `count` elements of 16 bytes, `times` times.
__global__ void stream(MicroResult* out, const uint4* data, int count, int times) {
  unsigned int sum = 0;
  __syncthreads();
  const unsigned long long begin = clock64();
#pragma unroll 1
  for (int t = 0; t < times; ++t) {
#pragma unroll 4
    for (int i = threadIdx.x; i < count; i += 1024) sum += data[i].x ^ data[i].w;
  }
  __syncthreads();
  if (threadIdx.x == 0) out->cycles = clock64() - begin;
  atomicAdd(&out->value, sum);
}

}  // namespace warpcache::edge_sim
