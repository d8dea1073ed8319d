// SPDX-License-Identifier: Apache-2.0
//
// Time as items store it: whole seconds since the server started, counted from 2. So 0 can mean
// "never", and 1 is always in the past.
#pragma once

#include <cstdint>

namespace warpcache::store {

inline constexpr uint32_t kClockStart = 2;

struct Clock {
  uint32_t now = kClockStart;  // the current second of the server
  int64_t unix_start = 0;      // time(2) is unix_start + now
};

}  // namespace warpcache::store
