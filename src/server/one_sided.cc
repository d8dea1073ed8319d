// SPDX-License-Identifier: Apache-2.0
#include "server/one_sided.h"

#include <random>

#include "store/layout/item.h"

namespace warpcache::server {
namespace {

uint64_t random_word() {
  std::random_device random;
  return uint64_t{random()} << 32 | uint64_t{random()};
}

}  // namespace

OneSided::OneSided(uint32_t slots) : slots_(slots, random_word()) {}

store::CopyHooks OneSided::hooks() {
  store::CopyHooks hooks;
  hooks.context = &slots_;
  hooks.drop = [](void* context, Bytes key) { static_cast<io::ItemSlots*>(context)->drop(key); };
  hooks.flush = [](void* context, uint32_t generation) {
    static_cast<io::ItemSlots*>(context)->flush(generation);
  };
  return hooks;
}

std::string OneSided::open(io::AmPort& port) {
  std::string key;
  std::string failure = port.expose(slots_.memory(), &key);
  if (!failure.empty()) return failure;
  const io::SlotRegion region = slots_.region();
  description_.assign(reinterpret_cast<const char*>(&region), sizeof region);
  description_ += key;
  return "";
}

// An item with a time to live would need the server's clock: it ends without a change.
void OneSided::copy(Bytes key) {
  (void)store_->visit_locked(key, [this](const store::Item& item) {
    constexpr uint8_t kSpecial = store::kItemStale | store::kItemTokenSent | store::kItemBinaryKey;
    if (item.chained() || (item.load_bits() & kSpecial) != 0) return;
    constexpr uint32_t kNever = 0;
    if (item.load_expiry() != kNever) return;
    slots_.fill({.key = item.key(),
                 .value = {item.value_data(), item.value_size},
                 .cas = item.load_cas(),
                 .client_flags = item.client_flags,
                 .generation = item.load_flush_generation()});
  });
}

}  // namespace warpcache::server
