// SPDX-License-Identifier: Apache-2.0
//
// Accesses to words that the host or other blocks see. Device code.
#pragma once

#include <cuda/atomic>

#include "edge/device_state.h"
#include "gpu/global_time.cuh"

namespace warpcache::edge {

template <typename T>
__device__ T load_system(const T* word) {
  return ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(*const_cast<T*>(word))
      .load(::cuda::memory_order_relaxed);
}

template <typename T>
__device__ void store_system(T* word, std::type_identity_t<T> value) {
  ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(*word).store(value,
                                                                  ::cuda::memory_order_relaxed);
}

template <typename T>
__device__ void store_release_system(T* word, std::type_identity_t<T> value) {
  ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(*word).store(value,
                                                                  ::cuda::memory_order_release);
}

template <typename T>
__device__ T load_device(const T* word) {
  return ::cuda::atomic_ref<T, ::cuda::thread_scope_device>(*const_cast<T*>(word))
      .load(::cuda::memory_order_relaxed);
}

template <typename T>
__device__ T load_acquire_device(const T* word) {
  return ::cuda::atomic_ref<T, ::cuda::thread_scope_device>(*const_cast<T*>(word))
      .load(::cuda::memory_order_acquire);
}

template <typename T>
__device__ void store_device(T* word, std::type_identity_t<T> value) {
  ::cuda::atomic_ref<T, ::cuda::thread_scope_device>(*word).store(value,
                                                                  ::cuda::memory_order_relaxed);
}

// Words of a block's own threads.
template <typename T>
__device__ T load_block(const T* word) {
  return ::cuda::atomic_ref<T, ::cuda::thread_scope_block>(*const_cast<T*>(word))
      .load(::cuda::memory_order_relaxed);
}

template <typename T>
__device__ T load_acquire_block(const T* word) {
  return ::cuda::atomic_ref<T, ::cuda::thread_scope_block>(*const_cast<T*>(word))
      .load(::cuda::memory_order_acquire);
}

template <typename T>
__device__ void store_block(T* word, std::type_identity_t<T> value) {
  ::cuda::atomic_ref<T, ::cuda::thread_scope_block>(*word).store(value,
                                                                 ::cuda::memory_order_relaxed);
}

template <typename T>
__device__ void store_release_block(T* word, std::type_identity_t<T> value) {
  ::cuda::atomic_ref<T, ::cuda::thread_scope_block>(*word).store(value,
                                                                 ::cuda::memory_order_release);
}

// Orders all accesses before it and after it for every observer in the system.
__device__ inline void fence_all() {
  ::cuda::atomic_thread_fence(::cuda::memory_order_acq_rel, ::cuda::thread_scope_system);
}

__device__ inline uint32_t lane() { return threadIdx.x % kWarp; }
__device__ inline uint32_t warp() { return threadIdx.x / kWarp; }

// A pause between two looks: none or a short one while work comes often, longer when none has come
// for a while.
__device__ inline void pause(uint32_t round) {
  if (round < 64) return;
  __nanosleep(round < 2000 ? 20 : round < 20000 ? 500 : 5000);
}

// Likewise, for what waits at a barrier: it looks seldom from the start.
__device__ inline void back_off(uint32_t round) {
  constexpr uint32_t kFirstNs = 32;
  constexpr uint32_t kDoublings = 6;
  __nanosleep(kFirstNs << (round < kDoublings ? round : kDoublings));
}

__device__ inline void add_to(uint64_t* count, uint64_t value) {
  if (value != 0) atomicAdd(reinterpret_cast<unsigned long long*>(count), value);
}

}  // namespace warpcache::edge
