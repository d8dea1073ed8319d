// SPDX-License-Identifier: Apache-2.0
//
// Included first where device code is compiled for the simulated GPU. It replaces what nvcc knows
// by itself: keywords, built-in variables and functions, and the start of kernels. The code takes
// the branches for devices (__CUDA_ARCH__), so it lies in a library of its own that exports none of
// its inline functions to the host's code.
#pragma once

#include <cuda_runtime_api.h>
#include <emmintrin.h>

#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "simulated_gpu/thread.h"

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900

#define __global__
#define __device__
#define __host__
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// A block runs on one thread of the host.
#define __shared__ thread_local

namespace simt {

// A member of a built-in variable: read at each use.
template <uint32_t Place::*Member>
struct BuiltIn {
  operator uint32_t() const { return place().*Member; }
};

template <uint32_t Place::*Member>
struct BuiltInIndex {
  BuiltIn<Member> x;
};

}  // namespace simt

inline constexpr simt::BuiltInIndex<&simt::Place::thread> threadIdx;
inline constexpr simt::BuiltInIndex<&simt::Place::block> blockIdx;
inline constexpr simt::BuiltInIndex<&simt::Place::block_size> blockDim;
inline constexpr simt::BuiltInIndex<&simt::Place::grid_size> gridDim;

struct alignas(16) uint4 {
  unsigned int x, y, z, w;
};

// --- The start of kernels

namespace simt {

// Runs `body` in every thread of the grid, after all earlier work of the stream.
cudaError_t enqueue(cudaStream_t stream, const dim3& grid, const dim3& block,
                    std::function<void()> body);

}  // namespace simt

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  std::tuple<std::remove_const_t<std::remove_reference_t<Parameters>>...> copies(
      std::forward<Arguments>(arguments)...);
  return simt::enqueue(config->stream, config->gridDim, config->blockDim,
                       [kernel, copies] { std::apply(kernel, copies); });
}

template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel*, int, size_t) {
  *blocks = 64;
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, size_t) {
  return cudaSuccess;
}

// --- What threads do together

namespace simt {

template <typename T>
uint64_t word_of(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}

template <typename T>
T value_of(uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof(T));
  return value;
}

inline uint32_t lane() { return place().thread % kWarpSize; }

inline uint32_t votes(uint32_t mask, bool vote) {
  const uint64_t* const words = exchange_in_warp(mask, vote ? 1 : 0, Together::kVote);
  uint32_t all = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    if ((mask >> i & 1) != 0 && words[i] != 0) all |= 1u << i;
  }
  return all;
}

template <typename T, typename Join>
T reduce(uint32_t mask, T value, const Join& join) {
  const uint64_t* const words = exchange_in_warp(mask, word_of(value), Together::kReduce);
  T all = value;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    if ((mask >> i & 1) != 0 && i != lane()) all = join(all, value_of<T>(words[i]));
  }
  return all;
}

}  // namespace simt

template <typename T>
T __shfl_sync(uint32_t mask, T value, uint32_t lane) {
  const uint64_t* const words =
      simt::exchange_in_warp(mask, simt::word_of(value), simt::Together::kShuffle);
  return simt::value_of<T>(words[lane % simt::kWarpSize]);
}

template <typename T>
T __shfl_up_sync(uint32_t mask, T value, uint32_t delta) {
  const uint64_t* const words =
      simt::exchange_in_warp(mask, simt::word_of(value), simt::Together::kShuffle);
  return simt::lane() < delta ? value : simt::value_of<T>(words[simt::lane() - delta]);
}

inline uint32_t __ballot_sync(uint32_t mask, bool vote) { return simt::votes(mask, vote); }
inline int __any_sync(uint32_t mask, bool vote) { return simt::votes(mask, vote) != 0; }

template <typename T>
T __reduce_add_sync(uint32_t mask, T value) {
  return simt::reduce(mask, value, [](T a, T b) { return static_cast<T>(a + b); });
}
template <typename T>
T __reduce_max_sync(uint32_t mask, T value) {
  return simt::reduce(mask, value, [](T a, T b) { return a < b ? b : a; });
}
template <typename T>
T __reduce_or_sync(uint32_t mask, T value) {
  return simt::reduce(mask, value, [](T a, T b) { return static_cast<T>(a | b); });
}

inline void __syncwarp(uint32_t mask = ~0u) {
  simt::exchange_in_warp(mask, 0, simt::Together::kSync);
}
inline void __syncthreads() { simt::meet_in_block(0); }
inline int __syncthreads_or(bool vote) { return simt::meet_in_block(vote ? 1 : 0) != 0; }
inline int __syncthreads_count(bool vote) {
  return static_cast<int>(simt::meet_in_block(vote ? 1 : 0));
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(uint32_t) { simt::rest(); }
inline int64_t clock64() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
[[noreturn]] inline void __trap() { std::abort(); }

// --- Atomic operations on words of memory

template <typename T>
T atomicAdd(T* word, std::type_identity_t<T> value) {
  simt::pass();
  return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}
template <typename T>
T atomicExch(T* word, std::type_identity_t<T> value) {
  simt::pass();
  return __atomic_exchange_n(word, value, __ATOMIC_RELAXED);
}
template <typename T>
T atomicOr(T* word, std::type_identity_t<T> value) {
  simt::pass();
  return __atomic_fetch_or(word, value, __ATOMIC_RELAXED);
}
template <typename T>
T atomicCAS(T* word, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
  simt::pass();
  __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
template <typename T>
T atomicMax(T* word, std::type_identity_t<T> value) {
  T seen = *word;
  while (seen < value) {
    const T before = atomicCAS(word, seen, value);
    if (before == seen) break;
    seen = before;
  }
  return seen;
}
template <typename T>
T atomicMin(T* word, std::type_identity_t<T> value) {
  T seen = *word;
  while (seen > value) {
    const T before = atomicCAS(word, seen, value);
    if (before == seen) break;
    seen = before;
  }
  return seen;
}

// --- Loads and stores with a hint. Words of 16 bytes are read and written at once, as there.

// A hint for the compiler; unused here.
#define __builtin_assume(condition) static_cast<void>(condition)
inline bool __isGlobal(const void*) { return true; }

template <typename T>
T __ldcg(const T* from) {
  if constexpr (sizeof(T) == sizeof(__m128i)) {
    return std::bit_cast<T>(_mm_load_si128(reinterpret_cast<const __m128i*>(from)));
  } else {
    return *static_cast<const volatile T*>(from);
  }
}
template <typename T>
T __ldcv(const T* from) {
  return __ldcg(from);
}
template <typename T>
void __stcs(T* to, const T& value) {
  if constexpr (sizeof(T) == sizeof(__m128i)) {
    _mm_store_si128(reinterpret_cast<__m128i*>(to), std::bit_cast<__m128i>(value));
  } else {
    *to = value;
  }
}

// --- Bits

inline int __popc(uint32_t word) { return std::popcount(word); }
inline int __clz(uint32_t word) { return std::countl_zero(word); }
inline int __clzll(int64_t word) { return std::countl_zero(static_cast<uint64_t>(word)); }
inline int __ffs(uint32_t word) { return word == 0 ? 0 : std::countr_zero(word) + 1; }
inline int __ffsll(uint64_t word) { return word == 0 ? 0 : std::countr_zero(word) + 1; }
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (shift % 32));
}
inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
}
// For each half: all ones if both are equal, else 0.
inline uint32_t __vcmpeq2(uint32_t a, uint32_t b) {
  const uint32_t differ = a ^ b;
  return ((differ & 0xffff) == 0 ? 0xffffu : 0) | (differ >> 16 == 0 ? 0xffff0000u : 0);
}
template <typename T>
T min(T a, std::type_identity_t<T> b) {
  return b < a ? b : a;
}
template <typename T>
T max(T a, std::type_identity_t<T> b) {
  return a < b ? b : a;
}
