// SPDX-License-Identifier: Apache-2.0
//
// Converts the exptime of a client to the server second at which an item expires. The rules are
// memcached's: 0 never, negative at once, up to 30 days relative to now, above that Unix time.
#pragma once

#include <cstdint>

#include "base/hd.h"
#include "store/layout/clock.h"

namespace warpcache::request {

inline constexpr int32_t kRelativeExptimeMax = 60 * 60 * 24 * 30;  // seconds
inline constexpr uint32_t kExpired = 1;  // the clock starts at 2, so this second has always passed

// 0: never.
WC_HD inline uint32_t expiry_second(int32_t exptime, const store::Clock& clock) {
  if (exptime == 0) return 0;
  if (exptime < 0) return kExpired;
  if (exptime <= kRelativeExptimeMax) return clock.now + static_cast<uint32_t>(exptime);
  if (exptime <= clock.unix_start) return kExpired;
  return static_cast<uint32_t>(exptime - clock.unix_start);
}

// Seconds left, -1: never expires.
WC_HD inline int32_t seconds_left(uint32_t expiry, const store::Clock& clock) {
  if (expiry == 0) return -1;
  return expiry > clock.now ? static_cast<int32_t>(expiry - clock.now) : 0;
}

}  // namespace warpcache::request
