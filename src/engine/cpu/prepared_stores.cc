// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/prepared_stores.h"

#include <utility>

#include "base/bits.h"
#include "base/mem.h"
#include "request/expiry.h"
#include "store/log/item_run.h"

namespace warpcache::engine {

void PreparedStores::prepare_wanted(const request::Context& context) {
  const uint32_t wanted = std::exchange(wanted_, 0);
  if (!context.store.may_prepare(*context.thread, kGroupMax)) return;
  take_space(context, wanted);
  for (uint32_t left = ready_; left != 0; left &= left - 1) fill(context, lowest_bit(left));
}

// All items of a run have one expiry class, that of the first set. Sets of another class, and large
// ones, get none.
void PreparedStores::take_space(const request::Context& context, uint32_t wanted) {
  const store::Core& core = context.store.core;
  const auto expiry_of = [&](const protocol::Request& request) {
    return request::expiry_second(request.exptime, context.clock);
  };
  const uint32_t expiry_class =
      store::expiry_class(*core.shared, expiry_of(*requests_[lowest_bit(wanted)]));
  store::ItemRun run(core, *context.thread, expiry_class);
  for (uint32_t left = wanted; left != 0; left &= left - 1) {
    const uint32_t index = lowest_bit(left);
    const protocol::Request& request = *requests_[index];
    if (request.value_size > kPreparedValueMax) continue;
    if (store::item_bytes(request.key_size, request.value_size) > core.plain_size_max()) continue;
    const uint32_t expiry = expiry_of(request);
    if (store::expiry_class(*core.shared, expiry) != expiry_class) continue;
    store::Item* const item = run.add(request.key_size, request.value_size, expiry);
    if (item == nullptr) return;
    item->client_flags = request.client_flags;
    items_[index] = item;
    ready_ |= 1u << index;
  }
}

void PreparedStores::fill(const request::Context& context, uint32_t index) const {
  const protocol::Request& request = *requests_[index];
  store::Item& item = *items_[index];
  mem_copy_short(item.key_data(), context.input + request.key_offset, request.key_size);
  mem_copy_often_short(item.value_data(), context.input + request.value_offset, request.value_size);
}

void PreparedStores::drop_ready(const request::Context& context) {
  for (uint32_t left = std::exchange(ready_, 0); left != 0; left ^= 1u << highest_bit(left)) {
    store::abandon_counted(context.store.core, *context.thread, items_[highest_bit(left)]);
  }
}

}  // namespace warpcache::engine
