// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "store/host/owner.h"

namespace warpcache::store {

// The store in use. It changes when a device fails.
class ActiveStore {
 public:
  void set(StoreOwner& store) { current_.store(&store); }
  StoreOwner* operator->() const { return current_.load(); }

 private:
  std::atomic<StoreOwner*> current_{nullptr};
};

}  // namespace warpcache::store
