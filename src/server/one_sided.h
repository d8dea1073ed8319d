// SPDX-License-Identifier: Apache-2.0
//
// --ucx-one-sided, an experiment: copies of the store's small items that clients read by
// themselves (io/ucx/item_slots.h). A client asks for a copy after it has got an item by a message.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "io/ucx/am_port.h"
#include "io/ucx/item_slots.h"
#include "nic_cache/nic_cache.h"
#include "store/layout/shared.h"

namespace warpcache::server {

class OneSided {
 public:
  // `slots` is a power of two. Throws std::bad_alloc.
  explicit OneSided(uint32_t slots);

  // What the store calls before an item changes. This object outlives the store.
  store::CopyHooks hooks();
  // Lets clients of the port and its siblings read, until the ports' end, which comes first.
  // Returns the error as text, or "".
  std::string open(io::AmPort& port);
  // As AmTransportConfig::slots. REQUIRES: open() was successful.
  const std::string& description() const { return description_; }

  // From here on copy() works. REQUIRES: the store was made with hooks(); it outlives stop().
  void start(std::unique_ptr<nic_cache::StoreAccess> store) { store_ = std::move(store); }
  void stop() { store_.reset(); }
  // Copies the key's item, unless it is too large, has a time to live, or is of a special kind. Any
  // thread, between start() and stop(), outside batches.
  void copy(Bytes key);

  const io::ItemSlots& slots() const { return slots_; }

 private:
  io::ItemSlots slots_;
  std::string description_;
  std::unique_ptr<nic_cache::StoreAccess> store_;
};

}  // namespace warpcache::server
