// SPDX-License-Identifier: Apache-2.0
//
// The plain sets of a group of requests: those that store their body whatever is there. Their items
// get space together, in one visit of the thread's append point, and keys and values are copied
// there. Nothing of it can be seen; each set is published at its place among the group's requests.
// A set that gets no item here, for whatever reason, allocates one by itself.
#pragma once

#include <cstdint>

#include "base/hd.h"
#include "request/state.h"
#include "store/layout/item.h"

namespace warpcache::engine {

// Longer values are copied when their set runs: so much of a group still fits into the caches.
inline constexpr uint32_t kPreparedValueMax = 4 * 1024;

class PreparedStores {
 public:
  static constexpr uint32_t kGroupMax = 32;  // requests of a group

  // Notes request `index` of the group, which request::is_plain_set() says is one. It is kept until
  // prepare().
  void add(uint32_t index, const protocol::Request& request) {
    requests_[index] = &request;
    wanted_ |= 1u << index;
  }

  // Makes items for the sets that were added.
  void prepare(const request::Context& context) {
    if (wanted_ != 0) prepare_wanted(context);
  }

  // The item of request `index`, which the caller publishes. Null: it has none.
  store::Item* take(uint32_t index) {
    const uint32_t bit = 1u << index;
    if ((ready_ & bit) == 0) return nullptr;
    ready_ ^= bit;
    return items_[index];
  }

  // Gives back the items that were not taken. To be called before the epoch of prepare() ends.
  void drop(const request::Context& context) {
    if (WC_UNLIKELY(ready_ != 0)) drop_ready(context);
  }

 private:
  void prepare_wanted(const request::Context& context);
  void take_space(const request::Context& context, uint32_t wanted);
  void fill(const request::Context& context, uint32_t index) const;
  void drop_ready(const request::Context& context);

  uint32_t wanted_ = 0;  // bits of requests
  uint32_t ready_ = 0;   // of those that have an item
  const protocol::Request* requests_[kGroupMax];
  store::Item* items_[kGroupMax];
};

}  // namespace warpcache::engine
