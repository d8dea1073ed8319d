// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.h"
#include "base/hd.h"

namespace warpcache::protocol {

// What `version` and `stats` say. It starts with the version of memcached whose behaviour clients
// may count on: some look for features by it.
WC_HD inline Bytes server_version() {
  constexpr size_t kSize = sizeof("1.6.45-warpcache") - 1;
  return {reinterpret_cast<const uint8_t*>("1.6.45-warpcache"), kSize};
}

}  // namespace warpcache::protocol
