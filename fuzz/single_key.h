// SPDX-License-Identifier: Apache-2.0
//
// Shared by the fuzz targets that make whole frames: the single-key fast path against the general
// path.
#pragma once

#include <cstdio>
#include <string>

#include "base/assert.h"
#include "protocol/testing/single_key.h"

namespace warpcache::fuzz {

inline void expect_none(const std::string& difference, const char* what) {
  if (difference.empty()) return;
  std::fprintf(stderr, "single-key %s differs: %s\n", what, difference.c_str());
  WC_ASSERT(false);
}

// `client_flags` and `value`: what a get hits.
inline void check_single_key(const std::string& frame, uint32_t client_flags,
                             const std::string& value, uint32_t item_size_max) {
  const auto get = protocol::testing::compare_single_key_get(frame, client_flags, value);
  const auto set = protocol::testing::compare_single_key_set(frame, item_size_max);
  expect_none(get.difference, "get");
  expect_none(set.difference, "set");
  WC_ASSERT(!get.taken || !set.taken);
}

}  // namespace warpcache::fuzz
