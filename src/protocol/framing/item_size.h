// SPDX-License-Identifier: Apache-2.0
//
// The limit of -I, at the same byte as in memcached: it is compared with what memcached would need
// for the item.
#pragma once

#include <cstdint>

#include "base/hd.h"
#include "protocol/framing/frame_types.h"

namespace warpcache::protocol {

// Key, one byte after it, flags where they are not 0, CAS id unless switched off, value and CRLF,
// and 48 more.
WC_HD inline uint64_t item_size_as_memcached(uint32_t key_size, uint32_t client_flags,
                                             uint64_t value_size, bool cas_enabled) {
  return uint64_t{48} + key_size + 1 + (client_flags != 0 ? 4 : 0) + (cas_enabled ? 8 : 0) +
         value_size + 2;
}

WC_HD inline bool item_fits(const FrameLimits& limits, uint32_t key_size, uint32_t client_flags,
                            uint64_t value_size) {
  return item_size_as_memcached(key_size, client_flags, value_size, limits.cas_enabled) <=
         limits.item_size_max;
}

}  // namespace warpcache::protocol
