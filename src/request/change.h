// SPDX-License-Identifier: Apache-2.0
//
// Commands that change or remove an item: delete, touch, incr, decr and their meta and binary
// forms.
#pragma once

#include "base/number.h"
#include "request/meta_times.h"
#include "request/result.h"
#include "request/state.h"
#include "store/log/tails.h"

namespace warpcache::request {

namespace detail {

// Attempts of incr and decr to allocate the size that the value under the lock needs. Each attempt
// after the second means that another client has changed the number of digits meanwhile.
inline constexpr int kDeltaRoundsMax = 16;

WC_HD inline bool cas_differs(const protocol::Request& request, const store::Item& item) {
  return (request.bits & protocol::kCasCompare) != 0 && request.cas_compare != item.load_cas();
}

// md I: the item stays, marked so that the next client that reads it recaches it. ItemMoment
// explains the order of the writes.
WC_HD inline void mark_stale(const Context& context, const protocol::Request& request,
                             const store::Found& found) {
  store::Item& item = *found.item;
  context.store.will_change(item);
  const uint8_t cleared = static_cast<uint8_t>(item.load_bits() & ~store::kItemTokenSent);
  item.store_bits(static_cast<uint8_t>(cleared | store::kItemStale));
  if ((request.bits & protocol::kTouchBit) != 0) {
    context.store.set_expiry(found, expiry_second(request.exptime, context.clock));
  }
  item.store_cas(new_cas(context, request, item.load_cas()));
}

// md x: replaces `found` by an empty item with the request's flags and time. The CAS id stays,
// unless I or E asks for another one.
WC_HD inline void publish_emptied(const Context& context, const protocol::Request& request,
                                  store::LockedPair& pair, const store::Found& found,
                                  store::Allocation& empty) {
  const store::Item& old = *found.item;
  store::Item& item = *empty.item;
  item.client_flags = request.client_flags;
  uint8_t bits = static_cast<uint8_t>(old.load_bits() & store::kItemBinaryKey);
  if ((request.bits & protocol::kInvalidate) != 0)
    bits = static_cast<uint8_t>(bits | store::kItemStale);
  item.store_bits(bits);
  const bool touch = (request.bits & protocol::kTouchBit) != 0;
  item.store_expiry(touch ? expiry_second(request.exptime, context.clock) : 0);
  const bool renews = (request.bits & (protocol::kInvalidate | protocol::kCasSet)) != 0;
  item.store_cas(renews ? new_cas(context, request, old.load_cas()) : old.load_cas());
  pair.publish(*context.thread, empty, found);
}

// As memcached 1.6.45: an item that is only marked is no hit, and a wrong CAS id no miss, except
// with md.
WC_HD inline void count_delete(const Context& context, const protocol::Request& request,
                               protocol::Outcome outcome) {
  if (outcome == protocol::Outcome::kDeleted) {
    const bool marks = (request.bits & protocol::kInvalidate) != 0;
    if (!marks) context.counters->add(Counter::kDeleteHits);
  } else if (outcome == protocol::Outcome::kNotFound ||
             request.protocol == protocol::Protocol::kMeta) {
    context.counters->add(Counter::kDeleteMisses);
  }
}

}  // namespace detail

WC_HD inline Status execute_delete(const Context& context, RequestState& state,
                                   protocol::Result& result) {
  const protocol::Request& request = state.request;
  const Bytes key = context.key(request);
  const bool empties = (request.bits & protocol::kDropValue) != 0;
  store::Allocation empty = {};
  if (empties) {
    const Status status = allocate_for(context, state, 0, 0, empty);
    if (status != Status::kOk) return fail_store(context, status, result);
  }
  {
    store::LockedPair pair(context.store, request.hash, state.hint);
    const store::Found found = pair.find(key, state.hint);
    if (!found || !pair.alive(*found.item, context.clock.now)) {
      count_dead(context, found);
      result.outcome = protocol::Outcome::kNotFound;
    } else if (detail::cas_differs(request, *found.item)) {
      result.outcome = protocol::Outcome::kExists;
    } else {
      result.outcome = protocol::Outcome::kDeleted;
      if (empties) {
        detail::publish_emptied(context, request, pair, found, empty);
        empty = {};
      } else if ((request.bits & protocol::kInvalidate) != 0) {
        detail::mark_stale(context, request, found);
      } else {
        pair.unlink(*context.thread, found);
      }
    }
  }
  if (empty) context.store.abandon(*context.thread, empty);
  detail::count_delete(context, request, result.outcome);
  return Status::kOk;
}

WC_HD inline Status execute_touch(const Context& context, const RequestState& state,
                                  protocol::Result& result) {
  const protocol::Request& request = state.request;
  store::LockedPair pair(context.store, request.hash, state.hint);
  const store::Found found = pair.find(context.key(request), state.hint);
  const bool alive = found && pair.alive(*found.item, context.clock.now);
  if (alive) {
    context.store.set_expiry(found, expiry_second(request.exptime, context.clock));
    store::record_hit(found, context.clock.now);
    result.cas = found.item->load_cas();
    result.client_flags = found.item->client_flags;
  } else {
    count_dead(context, found);
  }
  result.outcome = alive ? protocol::Outcome::kTouched : protocol::Outcome::kNotFound;
  context.counters->add(Counter::kCmdTouch);
  context.counters->add(alive ? Counter::kTouchHits : Counter::kTouchMisses);
  return Status::kOk;
}

namespace detail {

WC_HD inline uint64_t apply_delta(protocol::Op op, uint64_t value, uint64_t delta) {
  if (op == protocol::Op::kIncr) return value + delta;  // wraps at 2^64, as memcached's does
  return value > delta ? value - delta : 0;
}

WC_HD inline void count_delta(const Context& context, protocol::Op op, bool hit) {
  if (op == protocol::Op::kIncr) {
    context.counters->add(hit ? Counter::kIncrHits : Counter::kIncrMisses);
  } else {
    context.counters->add(hit ? Counter::kDecrHits : Counter::kDecrMisses);
  }
}

// Writes `number` and pads it with blanks up to the item's value size.
WC_HD inline void write_number(const Context& context, store::Item& item, uint64_t number) {
  uint8_t digits[kDigitsOfU64Max];
  const uint32_t size = static_cast<uint32_t>(format_u64(number, digits) - digits);
  context.store.write_value(item, 0, {digits, size});
  uint8_t* value = item.value_data();
  for (uint32_t i = size; i < item.value_size; ++i) value[i] = ' ';
}

WC_HD inline void fill_number(const store::Item& item, uint64_t number, protocol::Result& result) {
  result.number = number;
  result.cas = item.load_cas();
  result.client_flags = item.client_flags;
  result.outcome = protocol::Outcome::kNumber;
}

// Reads the number in the value of `item` by memcached's rules; false: it is no number. A value
// that may be in several pieces is none, whatever the size of segments: an arithmetic command
// writes the whole value, with its padding, under the lock.
WC_HD inline bool read_number(const store::Item& item, uint64_t& number) {
  if (item.value_size == 0 || item.value_size > store::kFirstPieceMin) return false;
  return parse_u64({item.value_data(), item.value_size}, number);
}

enum class DeltaStep : uint8_t { kDone, kNeedSpace };

struct DeltaSpace {
  store::Allocation allocation = {};
  uint32_t value_size = 0;
};

// `old`: the item with the number; null: a new item is made.
WC_HD inline MetaTimes times_of_number(const Context& context, const protocol::Request& request,
                                       const store::Item* old) {
  const uint32_t before = old == nullptr ? 0 : old->load_expiry();
  if (request.protocol == protocol::Protocol::kMeta) {
    return take_times(context, request, before, old == nullptr);
  }
  const uint32_t expiry =
      old == nullptr ? expiry_second(request.vivify_exptime, context.clock) : before;
  return {expiry, expiry, false};
}

// One attempt under the lock. kNeedSpace: `space.value_size` says what the new value takes.
WC_HD inline DeltaStep change_number(const Context& context, const protocol::Request& request,
                                     Bytes key, DeltaSpace& space, protocol::Result& result) {
  store::LockedPair pair(context.store, request.hash);
  const store::Found found = pair.find(key);
  const bool alive = found && pair.alive(*found.item, context.clock.now);
  uint64_t number = request.initial;
  uint32_t old_size = 0;
  if (alive) {
    // memcached checks in this order: the item exists, the CAS id is right, the value is a number.
    // The CAS id 0 means none here.
    if (found.item->value_size == 0) {
      set_error(result, Status::kNonNumeric);
      return DeltaStep::kDone;
    }
    if (request.cas_compare != 0 && cas_differs(request, *found.item)) {
      result.outcome = protocol::Outcome::kExists;
      return DeltaStep::kDone;
    }
    if (!read_number(*found.item, number)) {
      set_error(result, Status::kNonNumeric);
      return DeltaStep::kDone;
    }
    number = apply_delta(request.op, number, request.delta);
    old_size = found.item->value_size;
  } else if ((request.bits & protocol::kVivify) == 0) {
    count_dead(context, found);
    result.outcome = protocol::Outcome::kNotFound;
    return DeltaStep::kDone;
  }
  const uint32_t digits = decimal_size(number);
  const uint32_t size = digits > old_size ? digits : old_size;
  if (!space.allocation || space.value_size != size) {
    space.value_size = size;
    return DeltaStep::kNeedSpace;
  }
  store::Item& item = *space.allocation.item;
  item.client_flags = 0;
  uint8_t bits = 0;
  if ((request.bits & protocol::kKeyIsBase64) != 0) bits = store::kItemBinaryKey;
  if (alive) {
    item.client_flags = found.item->client_flags;
    bits = found.item->load_bits();
  }
  const MetaTimes times = times_of_number(context, request, alive ? found.item : nullptr);
  item.store_bits(bits);
  item.store_expiry(times.expiry);
  item.store_cas(new_cas(context, request, alive ? found.item->load_cas() : 0));
  write_number(context, item, number);
  result.ttl = seconds_left(times.shown, context.clock);
  fill_number(item, number, result);
  if (alive) {
    count_delta(context, request.op, true);
  } else {
    count_dead(context, found);
  }
  pair.publish(*context.thread, space.allocation, found);
  // An arithmetic command does not count as an access.
  if (alive) item.store_access_time(found.item->load_access_time());
  space.allocation = {};
  return DeltaStep::kDone;
}

}  // namespace detail

// kDeferred: nothing took effect; run it again after reclaim().
WC_HD inline Status execute_delta(const Context& context, RequestState& state,
                                  protocol::Result& result) {
  const protocol::Request& request = state.request;
  const Bytes key = context.key(request);
  detail::DeltaSpace space;
  // A guess from a look-up without the lock usually saves the first attempt.
  const store::Found guess = context.store.find(request.hash, key, state.hint);
  if (guess || (request.bits & protocol::kVivify) != 0) {
    uint64_t number = request.initial;
    const bool numeric = guess && detail::read_number(*guess.item, number);
    if (numeric) number = detail::apply_delta(request.op, number, request.delta);
    const uint32_t old_size = numeric ? guess.item->value_size : 0;
    const uint32_t digits = decimal_size(number);
    space.value_size = digits > old_size ? digits : old_size;
  }
  for (int round = 0; round < detail::kDeltaRoundsMax; ++round) {
    if (space.value_size != 0) {
      const Status status = allocate_for(context, state, space.value_size, 0, space.allocation);
      if (status != Status::kOk) return fail_store(context, status, result);
    }
    const detail::DeltaStep step = detail::change_number(context, request, key, space, result);
    if (space.allocation) context.store.abandon(*context.thread, space.allocation);
    space.allocation = {};
    if (step == detail::DeltaStep::kDone) {
      const bool miss = result.outcome == protocol::Outcome::kNotFound;
      if (miss) detail::count_delta(context, request.op, false);
      return Status::kOk;
    }
  }
  state.bytes_wanted = 0;
  return Status::kDeferred;
}

}  // namespace warpcache::request
