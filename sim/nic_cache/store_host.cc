// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/store_host.h"

#include <algorithm>
#include <utility>

namespace warpcache::nic {
namespace {

constexpr uint64_t kSeed = 1;  // of the store's hash; not the NIC's

// What a simulated store takes for a key: only its sizes' sum matters.
sim::Entry entry_of(const Item& item) {
  const uint32_t key_size = std::min<uint32_t>(item.bytes, bench::kKeySizeMin);
  return {item.value, item.bytes - key_size, static_cast<uint8_t>(key_size), 0};
}

}  // namespace

std::unique_ptr<StoreHost> StoreHost::create(uint32_t keys, uint64_t memory_bytes) {
  std::unique_ptr<sim::RealStore> store = sim::RealStore::create(memory_bytes, kSeed);
  if (store == nullptr) return nullptr;
  return std::unique_ptr<StoreHost>(new StoreHost(keys, std::move(store)));
}

std::optional<Item> StoreHost::find(uint32_t key) {
  uint32_t value = 0;
  if (!store_->get(sim::make_key(kSeed, key), &value)) return std::nullopt;
  return Item{key, value, bytes_[key], false};
}

void StoreHost::store(const Item& item) {
  bytes_[item.key] = item.bytes;
  store_->set(sim::make_key(kSeed, item.key), entry_of(item));
}

void StoreHost::remove(uint32_t key) { store_->erase(sim::make_key(kSeed, key)); }

}  // namespace warpcache::nic
