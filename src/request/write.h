// SPDX-License-Identifier: Apache-2.0
//
// Storage commands: set, add, replace, cas, append, prepend, in every protocol. Each looks the key
// up first, so that a command that must fail writes nothing. Then it allocates an item and fills it
// without a lock. Then it locks the pair, decides again on the current item, and swaps one slot.
#pragma once

#include "protocol/binary.h"
#include "protocol/framing/item_size.h"
#include "request/result.h"
#include "request/state.h"

namespace warpcache::request {

namespace detail {

// A storage command that loses its item to other writers in this number of rounds is deferred to
// the next batch.
inline constexpr int kRetriesMax = 16;

enum class Decision : uint8_t { kStore, kStoreStale, kNotStored, kExists, kNotFound };

// Stores its body whatever is there, so it need not look before.
WC_HD inline bool stores_always(const protocol::Request& request) {
  return request.op == protocol::Op::kSet && (request.bits & protocol::kCasCompare) == 0;
}

WC_HD inline bool is_concatenation(protocol::Op op) {
  return op == protocol::Op::kAppend || op == protocol::Op::kPrepend;
}

// The effect of `request` when `old` is stored (null: nothing alive).
WC_HD inline Decision decide(const protocol::Request& request, const store::Item* old) {
  const bool compare = (request.bits & protocol::kCasCompare) != 0;
  if (request.op == protocol::Op::kAdd)
    return old == nullptr ? Decision::kStore : Decision::kNotStored;
  if (old == nullptr) {
    if (is_concatenation(request.op)) {
      return (request.bits & protocol::kVivify) != 0 ? Decision::kStore : Decision::kNotStored;
    }
    if (compare) return Decision::kNotFound;
    return request.op == protocol::Op::kReplace ? Decision::kNotStored : Decision::kStore;
  }
  if (!compare) return Decision::kStore;
  // 0 is no valid CAS id; append and prepend treat it as no comparison.
  if (request.cas_compare == 0) {
    return is_concatenation(request.op) ? Decision::kStore : Decision::kExists;
  }
  const uint64_t cas = old->load_cas();
  if (request.cas_compare == cas) return Decision::kStore;
  const bool older = request.cas_compare < cas;
  if ((request.bits & protocol::kInvalidate) != 0 && older && !is_concatenation(request.op)) {
    return Decision::kStoreStale;
  }
  return Decision::kExists;
}

WC_HD inline void count_cas(const Context& context, const protocol::Request& request,
                            Decision decision) {
  if ((request.bits & protocol::kCasCompare) == 0 || is_concatenation(request.op)) return;
  if (decision == Decision::kNotFound) context.counters->add(Counter::kCasMisses);
  if (decision == Decision::kExists) context.counters->add(Counter::kCasBadval);
  if (decision == Decision::kStore || decision == Decision::kStoreStale)
    context.counters->add(Counter::kCasHits);
}

WC_HD inline void set_outcome(Decision decision, protocol::Result& result) {
  switch (decision) {
    case Decision::kStore:
    case Decision::kStoreStale:
      result.outcome = protocol::Outcome::kStored;
      break;
    case Decision::kNotStored:
      result.outcome = protocol::Outcome::kNotStored;
      break;
    case Decision::kExists:
      result.outcome = protocol::Outcome::kExists;
      break;
    case Decision::kNotFound:
      result.outcome = protocol::Outcome::kNotFound;
      break;
  }
}

WC_HD inline Bytes inline_body(const Context& context, const protocol::Request& request) {
  return {context.input + request.value_offset, request.value_size};
}

// Copies the request's body, wherever it was received, into the value of `item` from `offset` on.
WC_HD inline void copy_body(const Context& context, const protocol::Request& request,
                            store::Item& item, uint32_t offset) {
  if ((request.bits & protocol::kReserved) == 0) {
    context.store.write_value(item, offset, inline_body(context, request));
    return;
  }
  const store::Item& staged = context.store.reserved_item(context.reservation);
  context.store.copy_value(item, offset, staged);
}

// Sets all other fields of the new item; returns its CAS id. REQUIRES: the pair's lock is held;
// `old` may be null.
WC_HD inline uint64_t finish_item(const Context& context, const protocol::Request& request,
                                  Decision decision, const store::Item* old, store::Item& item) {
  const uint8_t binary = (request.bits & protocol::kKeyIsBase64) != 0 ? store::kItemBinaryKey : 0;
  uint8_t bits = binary;
  uint32_t expiry = expiry_second(request.exptime, context.clock);
  item.client_flags = request.client_flags;
  if (is_concatenation(request.op)) {
    if (old != nullptr) {
      item.client_flags = old->client_flags;
      expiry = old->load_expiry();
    } else {
      expiry = expiry_second(request.vivify_exptime, context.clock);
    }
  }
  if (decision == Decision::kStoreStale) {
    expiry = old->load_expiry();
    bits =
        static_cast<uint8_t>(bits | store::kItemStale | (old->load_bits() & store::kItemTokenSent));
  }
  const uint64_t cas = new_cas(context, request, old == nullptr ? 0 : old->load_cas());
  item.init_words(cas, expiry, bits);
  return cas;
}

// Writes the value of a concatenation: old and new bytes in order. `old` may be null (a new item).
WC_HD inline void fill_value(const Context& context, const protocol::Request& request,
                             const store::Item* old, store::Item& item) {
  if (!is_concatenation(request.op) || old == nullptr) {
    copy_body(context, request, item, 0);
  } else if (request.op == protocol::Op::kAppend) {
    context.store.copy_value(item, 0, *old);
    copy_body(context, request, item, old->value_size);
  } else {
    copy_body(context, request, item, 0);
    context.store.copy_value(item, request.value_size, *old);
  }
}

// The old value and the new bytes together exceed -I, or what the store can ever hold.
WC_HD inline bool joined_too_large(const Context& context, const protocol::Request& request,
                                   const store::Item& old, uint64_t value_size) {
  return context.store.too_large(request.key_size, value_size) ||
         protocol::item_size_as_memcached(request.key_size, old.client_flags, value_size,
                                          context.cas_enabled) > context.item_size_max;
}

enum class Step : uint8_t { kDone, kAgain };

// Locks the pair, decides on the current item and publishes `allocation`. It was filled for `seen`,
// the item that the look-up without a lock found alive (or null). kAgain: a concatenation finds
// another item than the one it copied.
template <typename Memory, typename Key>
WC_HD inline Step publish_if_still(const Context& context, const protocol::Request& request,
                                   const Key& key, const store::Item* seen,
                                   store::Allocation& allocation, Decision& decision,
                                   protocol::Result& result) {
  store::LockedPair pair(context.store, request.hash);
  const auto current = pair.find<Memory>(key);
  const bool alive = current && pair.alive(*current.item, context.clock.now);
  const store::Item* old = alive ? current.item : nullptr;
  decision = decide(request, old);
  if (decision != Decision::kStore && decision != Decision::kStoreStale) return Step::kDone;
  if (is_concatenation(request.op) && old != seen) return Step::kAgain;
  if (current && !alive) count_dead(context, store::Found{current.item, current.set, current.way});
  result.cas = finish_item(context, request, decision, old, *allocation.item);
  result.value_size = allocation.item->value_size;
  pair.publish(*context.thread, allocation, store::Found{current.item, current.set, current.way});
  allocation = {};
  return Step::kDone;
}

WC_HD inline void finish_store(const Context& context, const protocol::Request& request,
                               Decision decision, const store::Found& found,
                               protocol::Result& result) {
  // A failed add counts as an access for eviction, so that a key that clients keep adding stays.
  // But the item has not been fetched.
  if (decision == Decision::kNotStored && request.op == protocol::Op::kAdd && found) {
    store::note_access(found, context.clock.now);
  }
  count_cas(context, request, decision);
  set_outcome(decision, result);
}

}  // namespace detail

// Publishes `allocation`, which has key and value, as an unconditional SET without expiry. `key`
// and what a look-up reads are read as `Memory` does.
template <typename Memory, typename Key>
WC_HD inline void publish_plain_set(const Context& context, uint64_t hash, const Key& key,
                                    uint32_t client_flags, store::Allocation& allocation) {
  protocol::Request request = {};
  request.op = protocol::Op::kSet;
  request.hash = hash;
  request.client_flags = client_flags;
  detail::Decision decision = {};
  protocol::Result result;
  (void)detail::publish_if_still<Memory>(context, request, key, nullptr, allocation, decision,
                                         result);
}

// A storage command that stores its body whatever is there, as a new item without special marks or
// CAS id. Its reply may be left out or show flags.
WC_HD inline bool is_plain_set(const protocol::Request& request) {
  constexpr uint32_t kAllowed = protocol::kNoReply | protocol::kQuiet | protocol::kAnswersFlags;
  return request.op == protocol::Op::kSet && request.status == Status::kOk &&
         (request.bits & ~kAllowed) == 0;
}

// Publishes `item`, an item of a store::ItemRun with key, value, flags and expiry, as the plain set
// `state`. Returns its CAS id.
WC_HD inline uint64_t publish_prepared_set(const Context& context, const RequestState& state,
                                           store::Item* item) {
  const protocol::Request& request = state.request;
  if (request.protocol == protocol::Protocol::kMeta) context.counters->add(Counter::kCmdMeta);
  context.counters->add(Counter::kCmdSet);
  store::LockedPair pair(context.store, request.hash, state.hint);
  const store::Found current = pair.find(context.key(request), state.hint);
  const bool alive = current && pair.alive(*current.item, context.clock.now);
  if (current && !alive) count_dead(context, current);
  const uint64_t cas = new_cas(context, request, alive ? current.item->load_cas() : 0);
  store_relaxed(&item->cas, cas);
  pair.publish_counted(*context.thread, item, current);
  return cas;
}

// Removes the old value of a key whose new value was refused: clients must not read the old value
// after a set.
WC_HD inline void drop_old_value(const Context& context, const protocol::Request& request) {
  store::LockedPair pair(context.store, request.hash);
  const store::Found found = pair.find(context.key(request));
  if (found) pair.unlink(*context.thread, found);
}

// A storage command that finds no memory must remove the old value. (For those that framing has
// refused, parse() sets protocol::kDropOld.)
WC_HD inline bool failure_drops_value(const protocol::Request& request) {
  if (request.protocol == protocol::Protocol::kMeta) return true;
  if (request.protocol == protocol::Protocol::kBinary) {
    return request.binary_opcode == protocol::kOpSet || request.binary_opcode == protocol::kOpSetQ;
  }
  return detail::stores_always(request);
}

// A storage command will probably store exactly its body, so that its item can be allocated and
// filled in advance. A hint: execute() decides.
WC_HD inline bool will_store_body(const Context& context, const RequestState& state) {
  const protocol::Request& request = state.request;
  const bool stores = request.op == protocol::Op::kSet || request.op == protocol::Op::kAdd ||
                      request.op == protocol::Op::kReplace;
  if (!stores || request.status != Status::kOk) return false;
  if (detail::stores_always(request)) return true;
  const store::Found found = context.store.find(request.hash, context.key(request), state.hint);
  const bool alive = found && context.store.alive(*found.item, context.clock.now);
  const detail::Decision decision = detail::decide(request, alive ? found.item : nullptr);
  return decision == detail::Decision::kStore || decision == detail::Decision::kStoreStale;
}

// kDeferred: nothing took effect; run it again after reclaim().
WC_HD inline Status execute_store(const Context& context, RequestState& state,
                                  protocol::Result& result) {
  const protocol::Request& request = state.request;
  const Bytes key = context.key(request);
  store::Candidate hint = state.hint;
  for (int round = 0; round < detail::kRetriesMax; ++round) {
    store::Found found = {};
    if (!detail::stores_always(request)) found = context.store.find(request.hash, key, hint);
    const bool alive = found && context.store.alive(*found.item, context.clock.now);
    const store::Item* old = alive ? found.item : nullptr;
    detail::Decision decision = detail::decide(request, old);
    if (decision != detail::Decision::kStore && decision != detail::Decision::kStoreStale) {
      context.counters->add(Counter::kCmdSet);
      if (found && !alive) count_dead(context, found);
      detail::finish_store(context, request, decision, found, result);
      return Status::kOk;
    }
    const bool joins = detail::is_concatenation(request.op) && old != nullptr;
    const uint64_t value_size = uint64_t{request.value_size} + (joins ? old->value_size : 0);
    if (joins && detail::joined_too_large(context, request, *old, value_size)) {
      context.counters->add(Counter::kCmdSet);
      result.outcome = protocol::Outcome::kNotStored;
      return Status::kOk;
    }
    // A concatenation may have to run again, so it never uses its reservation up.
    const bool takes_reservation =
        (request.bits & protocol::kReserved) != 0 && !detail::is_concatenation(request.op);
    store::Allocation allocation = {};
    const Status status = takes_reservation
                              ? allocate_reserved(context, state, allocation)
                              : allocate_for(context, state, static_cast<uint32_t>(value_size),
                                             request.exptime, allocation);
    if (status != Status::kOk) {
      const Status answer = fail_store(context, status, result);
      if (answer == Status::kOk && failure_drops_value(request)) drop_old_value(context, request);
      return answer;
    }
    if (!allocation.holds_value) detail::fill_value(context, request, old, *allocation.item);
    const detail::Step step = detail::publish_if_still<store::PlainMemory>(
        context, request, key, old, allocation, decision, result);
    if (allocation) context.store.abandon(*context.thread, allocation);
    if (step == detail::Step::kDone) {
      context.counters->add(Counter::kCmdSet);
      detail::finish_store(context, request, decision, found, result);
      return Status::kOk;
    }
    hint = {};
  }
  state.bytes_wanted = 0;
  return Status::kDeferred;
}

}  // namespace warpcache::request
