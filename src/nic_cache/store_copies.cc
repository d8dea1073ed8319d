// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/store_copies.h"

namespace warpcache::nic_cache {

store::CopyHooks hooks_of(CopyTable& table) {
  store::CopyHooks hooks;
  hooks.context = &table;
  hooks.drop = [](void* context, Bytes key) { static_cast<CopyTable*>(context)->drop(key); };
  hooks.flush = [](void* context, uint32_t generation) {
    static_cast<CopyTable*>(context)->flush(generation);
  };
  hooks.clock = [](void* context, uint32_t now) {
    static_cast<CopyTable*>(context)->set_clock(now);
  };
  return hooks;
}

void copy_item(CopyTable& table, const store::Item& item, uint32_t version) {
  constexpr uint8_t kSpecial = store::kItemStale | store::kItemTokenSent | store::kItemBinaryKey;
  if (item.chained() || (item.load_bits() & kSpecial) != 0) return;
  (void)table.fill({.key = item.key(),
                    .value = {item.value_data(), item.value_size},
                    .cas = item.load_cas(),
                    .client_flags = item.client_flags,
                    .expiry = item.load_expiry(),
                    .generation = item.load_flush_generation(),
                    .version = version});
}

}  // namespace warpcache::nic_cache
