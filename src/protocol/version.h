// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.h"
#include "base/hd.h"

namespace warpcache::protocol {

// The version in the replies of `version` and `stats`. It starts with the version of memcached
// whose behaviour clients may rely on: some choose features by it.
WC_HD inline Bytes server_version() {
  constexpr size_t kSize = sizeof("1.6.45-warpcache") - 1;
  return {reinterpret_cast<const uint8_t*>("1.6.45-warpcache"), kSize};
}

}  // namespace warpcache::protocol
