// SPDX-License-Identifier: Apache-2.0
//
// What looks into a store of the host from outside: whoever wants to learn what happens there, and
// tests that make it fail. Given with StoreConfig, and called from any thread, with locks held: the
// functions must not use the store.
#pragma once

#include <cstdint>

#include "store/layout/item.h"

namespace warpcache::store {

class Observer {
 public:
  // A live item is evicted at server second `now`. The lock of its pair is held.
  virtual void evicted(const Item& item, uint32_t now) = 0;

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
