// SPDX-License-Identifier: Apache-2.0
//
// Time as items know it: whole seconds since the server's start, counted from 2, so that 0 can mean
// never and 1 is always past.
#pragma once

#include <cstdint>

namespace warpcache::store {

inline constexpr uint32_t kClockStart = 2;

struct Clock {
  uint32_t now = kClockStart;  // server second
  int64_t unix_start = 0;      // time(2) is unix_start + now
};

}  // namespace warpcache::store
