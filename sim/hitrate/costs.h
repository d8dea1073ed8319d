// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_SIM_HITRATE_COSTS_H_
#define WARPCACHE_SIM_HITRATE_COSTS_H_

#include <algorithm>
#include <cstdint>

#include "hitrate/cache.h"

namespace warpcache::sim {

// The cost of entries, which is also the unit of a capacity: entries or bytes.
struct Costs {
  bool bytes = false;
  uint32_t overhead = 0;  // bytes an item in addition to key and value

  uint64_t of(const Entry& entry) const {
    return bytes ? uint64_t{overhead} + entry.key_size + entry.value_size : 1;
  }
  // How many entries a table is made for: with bytes an estimate, since items are seldom as small
  // as they can be.
  uint32_t items_max(uint64_t capacity) const {
    const uint64_t each = bytes ? std::max(overhead + kKeyBytesMin, kItemBytesUsual) : 1;
    return static_cast<uint32_t>(std::min<uint64_t>(capacity / each + 1, kItemsMax));
  }

 private:
  static constexpr uint32_t kKeyBytesMin = 8;
  static constexpr uint32_t kItemBytesUsual = 256;
  static constexpr uint32_t kItemsMax = 1u << 28;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_COSTS_H_
