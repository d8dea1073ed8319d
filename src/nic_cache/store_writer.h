// SPDX-License-Identifier: Apache-2.0
//
// Sets items of a store on behalf of the NIC cache's program. In a header, because the server,
// which does not link the module, has one too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "base/status.h"
#include "store/host/store.h"

namespace warpcache::nic_cache {

class StoreWriter {
 public:
  // Registers with the store, which outlives it. What cannot be registered sets nothing.
  explicit StoreWriter(store::Store& store) : store_(store), ref_(store.ref()) {
    registered_ = store.register_thread(&thread_) == Status::kOk;
  }
  ~StoreWriter() {
    if (registered_) store_.unregister_thread(&thread_);
  }
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;

  // An item without a time to live, with a CAS id above `cas` if the store gave that. False: there
  // is no memory, and nothing has changed. This and remove() by one thread at a time, outside
  // batches.
  bool set(Bytes key, uint32_t client_flags, Bytes value, uint64_t cas) {
    if (!registered_) return false;
    const auto key_size = static_cast<uint32_t>(key.size);
    const auto value_size = static_cast<uint32_t>(value.size);
    for (;;) {
      store::Allocation allocation;
      ref_.enter_batch(thread_);
      const Status status =
          ref_.allocate(thread_, static_cast<uint8_t>(key_size), value_size, kNoExpiry, allocation);
      if (status == Status::kOk) {
        allocation.item->client_flags = client_flags;
        std::memcpy(allocation.item->key_data(), key.data, key.size);
        ref_.write_value(*allocation.item, 0, value);
        publish(key, allocation, cas);
      }
      ref_.leave_batch(thread_);
      if (status == Status::kOk) return true;
      if (status != Status::kDeferred) return false;
      if (store_.reclaim(store::item_bytes(key_size, value_size)) != Status::kOk) return false;
    }
  }

  void remove(Bytes key) {
    if (!registered_) return;
    ref_.enter_batch(thread_);
    {
      store::LockedPair pair(ref_, ref_.hash(key));
      if (const store::Found found = pair.find(key)) pair.unlink(thread_, found);
    }
    ref_.leave_batch(thread_);
  }

 private:
  static constexpr uint32_t kNoExpiry = 0;

  void publish(Bytes key, store::Allocation& allocation, uint64_t cas) {
    store::LockedPair pair(ref_, ref_.hash(key));
    const store::Found existing = pair.find(key);
    const uint64_t old = existing ? std::max(existing.item->load_cas(), cas) : cas;
    allocation.item->store_cas(ref_.next_cas(thread_, old));
    pair.publish(thread_, allocation, existing);
  }

  store::Store& store_;
  store::StoreRef ref_;
  store::ThreadContext thread_;
  bool registered_ = false;
};

}  // namespace warpcache::nic_cache
