// SPDX-License-Identifier: Apache-2.0
//
// Atomic access to plain words that threads share (on a device: all threads of the grid). The words
// have ordinary integer types; every access that can race with another uses these functions. The
// memory order is part of each name. T is an integer of 1, 2, 4 or 8 bytes, naturally aligned.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/hd.h"

#if defined(__CUDA_ARCH__)
#include <cuda/atomic>
#elif defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif
#if !defined(__CUDA_ARCH__)
#include <sched.h>
#endif

namespace warpcache {

namespace detail {

#if defined(__CUDA_ARCH__)
template <typename T>
__device__ cuda::atomic_ref<T, cuda::thread_scope_device> device_ref(const T* word) {
  return cuda::atomic_ref<T, cuda::thread_scope_device>(*const_cast<T*>(word));
}
#endif

template <typename T>
inline constexpr bool kIsWord = std::is_integral_v<T> && sizeof(T) <= 8;

}  // namespace detail

#if defined(__CUDA_ARCH__)
#define WC_ATOMIC_BODY(device_expression, host_expression) return device_expression
#else
#define WC_ATOMIC_BODY(device_expression, host_expression) return host_expression
#endif

template <typename T>
WC_HD inline T load_relaxed(const T* word) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).load(cuda::memory_order_relaxed),
                 __atomic_load_n(word, __ATOMIC_RELAXED));
}

template <typename T>
WC_HD inline T load_acquire(const T* word) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).load(cuda::memory_order_acquire),
                 __atomic_load_n(word, __ATOMIC_ACQUIRE));
}

template <typename T>
WC_HD inline T load_seq_cst(const T* word) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).load(cuda::memory_order_seq_cst),
                 __atomic_load_n(word, __ATOMIC_SEQ_CST));
}

template <typename T>
WC_HD inline void store_relaxed(T* word, std::type_identity_t<T> value) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).store(value, cuda::memory_order_relaxed),
                 __atomic_store_n(word, value, __ATOMIC_RELAXED));
}

template <typename T>
WC_HD inline void store_release(T* word, std::type_identity_t<T> value) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).store(value, cuda::memory_order_release),
                 __atomic_store_n(word, value, __ATOMIC_RELEASE));
}

// Stores `value` with sequential consistency; returns the previous value.
template <typename T>
WC_HD inline T exchange_seq_cst(T* word, std::type_identity_t<T> value) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).exchange(value, cuda::memory_order_seq_cst),
                 __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST));
}

template <typename T>
WC_HD inline T exchange_acquire(T* word, std::type_identity_t<T> value) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).exchange(value, cuda::memory_order_acquire),
                 __atomic_exchange_n(word, value, __ATOMIC_ACQUIRE));
}

// For statistics that several threads count in: says nothing of other memory.
template <typename T>
WC_HD inline void add_relaxed(T* word, std::type_identity_t<T> value) {
  static_assert(detail::kIsWord<T>);
#if defined(__CUDA_ARCH__)
  (void)detail::device_ref(word).fetch_add(value, cuda::memory_order_relaxed);
#else
  (void)__atomic_fetch_add(word, value, __ATOMIC_RELAXED);
#endif
}

// Likewise, and returns the value before: for taking numbers.
template <typename T>
WC_HD inline T fetch_add_relaxed(T* word, std::type_identity_t<T> value) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).fetch_add(value, cuda::memory_order_relaxed),
                 __atomic_fetch_add(word, value, __ATOMIC_RELAXED));
}

// The fetch_ functions return the value before the change. Acquire and release.
template <typename T>
WC_HD inline T fetch_add(T* word, std::type_identity_t<T> value) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).fetch_add(value, cuda::memory_order_acq_rel),
                 __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL));
}

template <typename T>
WC_HD inline T fetch_sub(T* word, std::type_identity_t<T> value) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).fetch_sub(value, cuda::memory_order_acq_rel),
                 __atomic_fetch_sub(word, value, __ATOMIC_ACQ_REL));
}

template <typename T>
WC_HD inline T fetch_or(T* word, std::type_identity_t<T> value) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).fetch_or(value, cuda::memory_order_acq_rel),
                 __atomic_fetch_or(word, value, __ATOMIC_ACQ_REL));
}

template <typename T>
WC_HD inline T fetch_and(T* word, std::type_identity_t<T> value) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).fetch_and(value, cuda::memory_order_acq_rel),
                 __atomic_fetch_and(word, value, __ATOMIC_ACQ_REL));
}

template <typename T>
WC_HD inline T fetch_add_seq_cst(T* word, std::type_identity_t<T> value) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).fetch_add(value, cuda::memory_order_seq_cst),
                 __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST));
}

// A full fence after a read-modify-write: all threads see what is before that operation before what
// is after it. On x86 the locked instruction is a full fence already, so this adds nothing.
WC_HD inline void fence_after_rmw() {
#if defined(__CUDA_ARCH__)
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
#elif !defined(__x86_64__) && !defined(__i386__)
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// True: `word` held `expected` and now holds `desired`. False: `expected` is what it holds. Acquire
// and release.
template <typename T>
WC_HD inline bool compare_exchange(T* word, T& expected, std::type_identity_t<T> desired) {
  static_assert(detail::kIsWord<T>);
  WC_ATOMIC_BODY(detail::device_ref(word).compare_exchange_strong(
                     expected, desired, cuda::memory_order_acq_rel, cuda::memory_order_acquire),
                 __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE));
}

#undef WC_ATOMIC_BODY

// word = max(word, value).
template <typename T>
WC_HD inline void raise_to(T* word, std::type_identity_t<T> value) {
  T seen = load_relaxed(word);
  while (seen < value && !compare_exchange(word, seen, value)) {
  }
}

// word = min(word, value).
template <typename T>
WC_HD inline void lower_to(T* word, std::type_identity_t<T> value) {
  T seen = load_relaxed(word);
  while (seen > value && !compare_exchange(word, seen, value)) {
  }
}

// Adds to a word that only the calling thread writes; others may read it. Needs no locked
// instruction.
template <typename T>
WC_HD inline void add_owned(T* word, std::type_identity_t<T> value) {
  store_relaxed(word, static_cast<T>(load_relaxed(word) + value));
}

// One step of a wait for another thread; `tries` counts the steps from 0. Pauses in the first
// steps, then yields the core, because the other thread may not be running.
WC_HD inline void spin_wait(uint32_t tries) {
#if defined(__CUDA_ARCH__)
  __nanosleep(tries < 16 ? 20 : 200);
#else
  if (tries < 64) {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#endif
  } else {
    sched_yield();
  }
#endif
}

// A spin lock in the caller's word: 0 is free, 1 is held.
WC_HD inline void spin_lock(uint32_t* lock) {
  for (uint32_t tries = 0; exchange_acquire(lock, 1) != 0;) {
    while (load_relaxed(lock) != 0) spin_wait(tries++);
  }
}

WC_HD inline bool spin_try_lock(uint32_t* lock) {
  return load_relaxed(lock) == 0 && exchange_acquire(lock, 1) == 0;
}

WC_HD inline void spin_unlock(uint32_t* lock) { store_release(lock, 0); }

class SpinGuard {
 public:
  WC_HD explicit SpinGuard(uint32_t* lock) : lock_(lock) { spin_lock(lock_); }
  WC_HD ~SpinGuard() { spin_unlock(lock_); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  uint32_t* lock_;
};

WC_HD inline void prefetch(const void* address) {
#if defined(__CUDA_ARCH__)
  (void)address;
#else
  __builtin_prefetch(address);
#endif
}

// For memory whose lines other CPUs may have: it is to be written soon.
inline void prefetch_to_write(const void* address) {
#if defined(__x86_64__)
  // Compilers use it only where they are told that the processor has it. One that does not know it
  // does nothing.
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace warpcache
