// SPDX-License-Identifier: Apache-2.0
//
// The server's store (src/store) as the memcached behind the NIC, with its index, segments and
// eviction. The memory limit includes them, as -m does. The bytes of values are not written.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hitrate/real_store.h"
#include "nic_cache/host.h"

namespace warpcache::nic {

class StoreHost final : public Host {
 public:
  // Keys are the numbers below `keys`. Null if the system refuses the memory.
  static std::unique_ptr<StoreHost> create(uint32_t keys, uint64_t memory_bytes);

  uint64_t items() const { return store_->items(); }

 private:
  StoreHost(uint32_t keys, std::unique_ptr<sim::RealStore> store)
      : store_(std::move(store)), bytes_(keys) {}

  std::optional<Item> find(uint32_t key) override;
  void store(const Item& item) override;
  void remove(uint32_t key) override;

  std::unique_ptr<sim::RealStore> store_;
  std::vector<uint32_t> bytes_;  // of each key, at its last store
};

}  // namespace warpcache::nic
