// SPDX-License-Identifier: Apache-2.0
//
// Shared by all commands: results from items, space for new ones, CAS ids, failures.
#pragma once

#include "base/mem.h"
#include "request/expiry.h"
#include "request/state.h"

namespace warpcache::request {

// The words of an item that may change while it is read, in the order in which they are read. A
// writer that changes more than the expiry (an invalidation, a recache token) sets the mark (stale,
// or token sent) first and the new CAS id last. So a reader that sees the new CAS id also sees the
// new expiry, and a reader that sees either also sees the marks.
struct ItemMoment {
  uint64_t cas;
  uint32_t expiry;
  uint8_t bits;

  WC_HD explicit ItemMoment(const store::Item& item)
      : cas(item.load_cas()), expiry(item.load_expiry()), bits(item.load_bits()) {}

  WC_HD bool expired(uint32_t now) const { return store::has_expired(expiry, now); }
  WC_HD bool recaching() const { return (bits & (store::kItemStale | store::kItemTokenSent)) != 0; }
};

// Everything that a reply may show of `item`. The bytes of the value stay valid: the epoch of the
// batch protects them.
WC_HD inline void fill_from_item(const Context& context, const store::Item& item,
                                 const ItemMoment& moment, protocol::Result& result) {
  result.value = context.store.pieces(item).first();
  result.chained = item.chained();
  result.value_size = item.value_size;
  result.client_flags = item.client_flags;
  result.cas = moment.cas;
  result.ttl = seconds_left(moment.expiry, context.clock);
  const uint32_t accessed = item.load_access_time();
  result.idle = context.clock.now > accessed ? context.clock.now - accessed : 0;
  if ((moment.bits & store::kItemFetched) != 0) result.bits |= protocol::kHitBefore;
  if ((moment.bits & store::kItemBinaryKey) != 0) result.bits |= protocol::kItemKeyIsBinary;
}

WC_HD inline void set_error(protocol::Result& result, Status status) {
  result.outcome = protocol::Outcome::kError;
  result.status = status;
}

// The CAS id of an item that replaces one with the id `old`: given by the client, or a new one of
// the store; 0 with -C.
WC_HD inline uint64_t new_cas(const Context& context, const protocol::Request& request,
                              uint64_t old) {
  if (!context.cas_enabled) return 0;
  if ((request.bits & protocol::kCasSet) != 0) return request.cas_set;
  return context.store.next_cas(*context.thread, old);
}

// Space for key and value, with the key in place.
WC_HD inline Status allocate_for(const Context& context, RequestState& state, uint32_t value_size,
                                 int32_t exptime, store::Allocation& allocation) {
  const Bytes key = context.key(state.request);
  state.want(store::item_bytes(state.request.key_size, value_size));
  const Status status =
      context.store.allocate(*context.thread, static_cast<uint8_t>(key.size), value_size,
                             expiry_second(exptime, context.clock), allocation);
  if (status != Status::kOk) return status;
  mem_copy_short(allocation.item->key_data(), key.data, key.size);
  return Status::kOk;
}

// Space for a large body that was received into a reservation, with key and body in place.
WC_HD inline Status allocate_reserved(const Context& context, RequestState& state,
                                      store::Allocation& allocation) {
  const protocol::Request& request = state.request;
  const Bytes key = context.key(request);
  state.want(store::item_bytes(request.key_size, request.value_size));
  const Status status =
      context.store.allocate_reserved(*context.thread, context.reservation,
                                      expiry_second(request.exptime, context.clock), allocation);
  if (status == Status::kOk) mem_copy_short(allocation.item->key_data(), key.data, key.size);
  return status;
}

// The result of a failed allocation: deferred while reclaim() may help, else an answer.
WC_HD inline Status fail_store(const Context& context, Status status, protocol::Result& result) {
  if (status == Status::kDeferred && !context.out_of_memory) return Status::kDeferred;
  const bool too_large = status == Status::kTooLarge;
  context.counters->add(too_large ? Counter::kStoreTooLarge : Counter::kStoreNoMemory);
  set_error(result, too_large ? Status::kTooLarge : Status::kOutOfMemory);
  return Status::kOk;
}

// Counts a request of any kind that finds an expired or flushed item, as memcached does. `found`
// may be empty; otherwise it is not alive.
WC_HD inline void count_dead(const Context& context, const store::Found& found) {
  if (!found) return;
  const bool flushed = context.store.flushed(*found.item);
  context.counters->add(flushed ? Counter::kGetFlushed : Counter::kGetExpired);
}

}  // namespace warpcache::request
