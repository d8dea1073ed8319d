// SPDX-License-Identifier: Apache-2.0
//
// What looks into a store from outside: whoever wants to learn what happens there, and tests that
// make it fail. Given with StoreConfig, and called from any thread, with locks held: the functions
// must not use the store.
#pragma once

#include <cstdint>

#include "store/layout/item.h"

namespace warpcache::store {

class Observer {
 public:
  // A live item is evicted at server second `now`. Only header and key are readable. A store of the
  // host calls it with the lock of the item's pair held; one on a device soon after the eviction,
  // from one thread, and only between StoreOwner::watch_evictions() and the first moment at which
  // wants_evictions() is false.
  virtual void evicted(const Item& item, uint32_t now) = 0;

  // --- Called by a store on a device alone.
  virtual bool wants_evictions() { return true; }
  // Whether evicted() has space for one more. While it has not, the device's records wait.
  virtual bool takes_eviction() { return true; }
  // `count` evictions have happened of which evicted() will not be told.
  virtual void missed_evictions(uint64_t /*count*/) {}

 protected:
  ~Observer() = default;
};

class Faults {
 public:
  // True: this allocation or reservation answers kDeferred, as if there were no memory.
  virtual bool fails_allocation() = 0;

 protected:
  ~Faults() = default;
};

}  // namespace warpcache::store
