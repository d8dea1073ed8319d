// SPDX-License-Identifier: Apache-2.0
//
// Reads: get, gets, gat, gats, mg and their binary forms. The common case takes no lock and writes
// nothing but access hints. A read that changes its item (a new expiry, a recache token, a stub
// after a miss) takes the lock of the pair and looks again, because what it saw before may have
// changed.
#pragma once

#include "protocol/compose/compose.h"
#include "request/expiry.h"
#include "request/meta_times.h"
#include "request/result.h"
#include "request/state.h"

namespace warpcache::request {

namespace detail {

// As memcached 1.6.45: what touches is no get, except an mg that misses.
WC_HD inline void count_read(const Context& context, const protocol::Request& request, bool hit) {
  Counters& counters = *context.counters;
  const bool touches = (request.bits & protocol::kTouchBit) != 0;
  if (touches && (hit || request.protocol != protocol::Protocol::kMeta)) {
    counters.add(Counter::kCmdTouch);
    counters.add(hit ? Counter::kTouchHits : Counter::kTouchMisses);
  } else {
    counters.add(Counter::kCmdGet);
    counters.add(hit ? Counter::kGetHits : Counter::kGetMisses);
  }
}

// This mg gets the recache token: once for each item that is stale or about to expire.
WC_HD inline bool wins_token(const Context& context, const protocol::Request& request,
                             const ItemMoment& moment) {
  if ((moment.bits & store::kItemTokenSent) != 0) return false;
  if ((moment.bits & store::kItemStale) != 0) return true;
  if ((request.bits & protocol::kRecache) == 0) return false;
  return take_times(context, request, moment.expiry, false).wants_recache;
}

// Sets the new expiry of an item. REQUIRES: the pair's lock is held.
WC_HD inline void touch_found(const Context& context, const protocol::Request& request,
                              const store::Found& found, protocol::Result& result) {
  MetaTimes times = {};
  if (request.protocol == protocol::Protocol::kMeta) {
    times = take_times(context, request, found.item->load_expiry(), false);
  } else {
    times.expiry = times.shown = expiry_second(request.exptime, context.clock);
  }
  context.store.set_expiry(found, times.expiry);
  result.ttl = seconds_left(times.shown, context.clock);
}

// Takes the pin that is needed to send a long value. False: too much is pinned.
WC_HD inline bool pin_for_reply(const Context& context, RequestState& state,
                                const protocol::Result& result) {
  if (WC_LIKELY(result.value_size <= context.copied_value_max)) return true;
  if (!protocol::reply_carries_value(state.request, result)) return true;
  state.pin = context.store.pin(*state.item, store::PinNeed::kMust);
  return state.pin != 0;
}

// REQUIRES: `found` is alive; with `locked`, the pair's lock is held. False, without the lock: the
// words read are of different moments, or the read must change the item; the caller takes the lock
// and starts again. A touch may have come since the item was found alive. The recache marks of a
// meta reply are read under the lock.
WC_HD inline bool read_found(const Context& context, RequestState& state, const store::Found& found,
                             bool locked, protocol::Result& result) {
  const protocol::Request& request = state.request;
  store::Item& item = *found.item;
  state.item = &item;
  const ItemMoment moment(item);
  if (!locked && moment.expired(context.clock.now)) return false;
  fill_from_item(context, item, moment, result);
  result.outcome = protocol::Outcome::kHit;
  if (locked && !pin_for_reply(context, state, result)) {
    context.counters->add(Counter::kLargeMissed);
    result = {};
    result.outcome = protocol::Outcome::kMiss;
    return true;
  }
  if (request.protocol == protocol::Protocol::kMeta) {
    const bool wins = wins_token(context, request, moment);
    if (!locked && (wins || moment.recaching())) return false;
    if ((moment.bits & store::kItemStale) != 0) result.bits |= protocol::kStale;
    if ((moment.bits & store::kItemTokenSent) != 0) result.bits |= protocol::kAlreadySent;
    if (wins) {
      context.store.will_change(item);
      item.store_bits(static_cast<uint8_t>(moment.bits | store::kItemTokenSent));
      result.bits |= protocol::kWon;
    }
  }
  if (locked && (request.bits & protocol::kTouchBit) != 0) {
    touch_found(context, request, found, result);
  }
  if ((request.bits & protocol::kNoBump) == 0) store::record_hit(found, context.clock.now);
  return true;
}

// mg N after a miss: publishes a stub without a value; this client has its token. The pair's lock
// is held.
WC_HD inline void publish_stub(const Context& context, RequestState& state, store::LockedPair& pair,
                               const store::Found& dead, const store::Allocation& stub,
                               protocol::Result& result) {
  const protocol::Request& request = state.request;
  store::Item& item = *stub.item;
  state.item = &item;
  item.client_flags = 0;
  const MetaTimes times = take_times(context, request, 0, true);
  item.store_expiry(times.expiry);
  item.store_cas(new_cas(context, request, 0));
  const uint8_t binary = (request.bits & protocol::kKeyIsBase64) != 0 ? store::kItemBinaryKey : 0;
  item.store_bits(static_cast<uint8_t>(store::kItemTokenSent | binary));
  pair.publish(*context.thread, stub, dead);
  fill_from_item(context, item, ItemMoment(item), result);
  result.ttl = seconds_left(times.shown, context.clock);
  if ((request.bits & protocol::kNoBump) == 0) item.set_fetched();
  result.bits |= protocol::kWon;
  result.outcome = protocol::Outcome::kHit;
}

}  // namespace detail

enum class PlainRead : uint8_t {
  kHit,
  kMiss,
  kOther  // execute_read() runs it: nothing took effect
};

// A get that changes nothing, of what a look-up has found: hits on living items in one piece, and
// keys that are not there. `look(item)` takes what the reply shows of the item before the access is
// noted; false: the item is not as the caller needs it.
template <typename Look>
WC_HD inline PlainRead read_plain(const Context& context, const store::Found& found,
                                  const Look& look) {
  if (found) {
    const store::Item& item = *found.item;
    if (!context.store.alive(item, context.clock.now) || item.chained() || !look(item)) {
      return PlainRead::kOther;
    }
    store::record_hit(found, context.clock.now);
  }
  context.counters->add(Counter::kCmdGet);
  context.counters->add(found ? Counter::kGetHits : Counter::kGetMisses);
  return found ? PlainRead::kHit : PlainRead::kMiss;
}

// kDeferred: nothing took effect; run it again after reclaim().
WC_HD inline Status execute_read(const Context& context, RequestState& state,
                                 protocol::Result& result) {
  const protocol::Request& request = state.request;
  const Bytes key = context.key(request);
  store::Found found = context.store.find(request.hash, key, state.hint);
  bool alive = found && context.store.alive(*found.item, context.clock.now);
  const bool touches = (request.bits & protocol::kTouchBit) != 0;
  if (alive && !touches && detail::read_found(context, state, found, false, result)) {
    detail::count_read(context, request, true);
    return Status::kOk;
  }
  result = {};
  const bool vivify = (request.bits & protocol::kVivify) != 0;
  if (!alive && !vivify) {
    count_dead(context, found);
    detail::count_read(context, request, false);
    result.outcome = protocol::Outcome::kMiss;
    return Status::kOk;
  }

  store::Allocation stub = {};
  if (vivify) {
    const Status status = allocate_for(context, state, 0, request.vivify_exptime, stub);
    if (status != Status::kOk) return fail_store(context, status, result);
  }
  {
    store::LockedPair pair(context.store, request.hash);
    found = pair.find(key);
    alive = found && pair.alive(*found.item, context.clock.now);
    if (alive) {
      detail::read_found(context, state, found, true, result);
    } else if (vivify) {
      count_dead(context, found);
      detail::publish_stub(context, state, pair, found, stub, result);
      stub = {};
    } else {
      result.outcome = protocol::Outcome::kMiss;
    }
  }
  if (stub) context.store.abandon(*context.thread, stub);
  detail::count_read(context, request, alive);
  return Status::kOk;
}

}  // namespace warpcache::request
