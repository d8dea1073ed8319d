// SPDX-License-Identifier: Apache-2.0
//
// WC_ASSERT checks invariants. A failed check is a bug of the server, never something that a client
// can cause; it ends the process (on a device: the kernel). Release builds keep it. WC_DASSERT is
// for checks that cost too much on the request path; only builds without NDEBUG have it.
#pragma once

#include "base/hd.h"

#if !defined(__CUDA_ARCH__)
#include <cstdio>
#include <cstdlib>
#endif

namespace warpcache {

[[noreturn]] WC_HD inline void assert_failed(const char* expression, const char* file, int line) {
#if defined(__CUDA_ARCH__)
  (void)expression;
  (void)file;
  (void)line;
  __trap();
  while (true) {
  }
#else
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expression);
  std::abort();
#endif
}

}  // namespace warpcache

#define WC_ASSERT(x) \
  (WC_LIKELY(x) ? static_cast<void>(0) : ::warpcache::assert_failed(#x, __FILE__, __LINE__))

#if defined(NDEBUG)
#define WC_DASSERT(x) static_cast<void>(0)
#else
#define WC_DASSERT(x) WC_ASSERT(x)
#endif
