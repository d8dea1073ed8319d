// SPDX-License-Identifier: Apache-2.0
//
// Markers for code that runs on the host and on a CUDA device. Code under base/, net/, protocol/,
// store/ and request/ that a kernel may call is marked WC_HD and uses only what both compilers
// accept: no allocation, no recursion, no exceptions, no virtual calls.
#pragma once

#if defined(__CUDACC__)
#define WC_HD __host__ __device__
#else
#define WC_HD
#endif

#define WC_LIKELY(x) (__builtin_expect(!!(x), 1))
#define WC_UNLIKELY(x) (__builtin_expect(!!(x), 0))

// Unrolls a short loop of at most 16 iterations, so that its values stay in registers; or keeps a
// loop, so that the device has its code once.
#if defined(__CUDA_ARCH__)
#define WC_UNROLL _Pragma("unroll")
#define WC_NO_UNROLL _Pragma("unroll 1")
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define WC_UNROLL _Pragma("GCC unroll 16")
#define WC_NO_UNROLL
#else
#define WC_UNROLL
#define WC_NO_UNROLL
#endif
