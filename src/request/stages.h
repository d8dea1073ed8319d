// SPDX-License-Identifier: Apache-2.0
//
// The stages of a request: decode, locate, execute, size, emit. process_request() runs all of them
// for one request. Engines run one stage after the other over a batch, so that the memory accesses
// of one request overlap with the work on others. decode() and locate() have no effect, and
// execute() uses their results only as hints.
#pragma once

#include "base/assert.h"
#include "protocol/compose/compose.h"
#include "protocol/parse/parse.h"
#include "request/change.h"
#include "request/read.h"
#include "request/state.h"
#include "request/write.h"

namespace warpcache::request {

// Commands that act on one key of the store.
WC_HD inline bool acts_on_key(protocol::Op op) { return op <= protocol::Op::kTouch; }

// Commands that the engine gives to its AdminHandler.
WC_HD inline bool is_administrative(protocol::Op op) {
  return op >= protocol::Op::kMetaDebug && op <= protocol::Op::kSasl;
}

// Parses a frame, hashes the key, and prefetches the index set. `pairs`: of the
// index, now or earlier (StoreRef::pairs()); the same for many frames saves loads.
WC_HD inline void decode(const Context& context, const protocol::Frame& frame, uint32_t pairs,
                         RequestState& state) {
  protocol::parse_request(frame, context.input, state.request);
  state.item = nullptr;
  state.bytes_wanted = 0;
  state.pin = 0;
  if (!acts_on_key(state.request.op)) {
    state.hint = {};
    return;
  }
  state.request.hash = context.store.hash(context.key(state.request));
#if !defined(__CUDA_ARCH__)
  state.hint = context.store.prefetch_home(state.request.hash, pairs);
#else
  (void)pairs;
  state.hint = {};
#endif
}

WC_HD inline void decode(const Context& context, const protocol::Frame& frame,
                         RequestState& state) {
#if !defined(__CUDA_ARCH__)
  decode(context, frame, context.store.pairs(), state);
#else
  decode(context, frame, 0, state);
#endif
}

// Compares the tags and prefetches the item.
WC_HD inline void locate(const Context& context, RequestState& state) {
  if (!acts_on_key(state.request.op)) return;
#if defined(__CUDA_ARCH__)  // decode() has looked nothing up
  state.hint = context.store.probe(state.request.hash);
#else
  context.store.probe(state.request.hash, state.hint);
#endif
}

namespace detail {

// Answers a storage command that framing has refused: too large, no memory for its body, or a body
// without its line end.
WC_HD inline void execute_refused(const Context& context, const protocol::Request& request,
                                  protocol::Result& result) {
  if (request.status == Status::kTooLarge) context.counters->add(Counter::kStoreTooLarge);
  // As memcached: the body has come, and a store is counted before its line end is checked.
  if (request.status == Status::kBadDataChunk) context.counters->add(Counter::kCmdSet);
  if (request.status == Status::kOutOfMemory) context.counters->add(Counter::kStoreNoMemory);
  if ((request.bits & protocol::kDropOld) != 0) drop_old_value(context, request);
  set_error(result, request.status);
}

WC_HD inline void count_meta(const Context& context, const protocol::Request& request) {
  if (request.protocol == protocol::Protocol::kMeta) context.counters->add(Counter::kCmdMeta);
}

WC_HD inline Status execute_on_key(const Context& context, RequestState& state,
                                   protocol::Result& result) {
  switch (state.request.op) {
    case protocol::Op::kGet:
      return execute_read(context, state, result);
    case protocol::Op::kDelete:
      return execute_delete(context, state, result);
    case protocol::Op::kIncr:
    case protocol::Op::kDecr:
      return execute_delta(context, state, result);
    case protocol::Op::kTouch:
      return execute_touch(context, state, result);
    default:
      return execute_store(context, state, result);
  }
}

}  // namespace detail

// Executes the request and fills `result`. kDeferred: nothing took effect and `result` is not set;
// run it again after Store::reclaim(state.bytes_wanted), with Context::out_of_memory if that
// failed. REQUIRES: the thread is inside an epoch, and the command is not administrative.
WC_HD inline Status execute(const Context& context, RequestState& state, protocol::Result& result) {
  result = {};
  const protocol::Request& request = state.request;
  if (acts_on_key(request.op) && WC_LIKELY(request.status == Status::kOk)) {
    const Status status = detail::execute_on_key(context, state, result);
    if (status != Status::kDeferred) detail::count_meta(context, request);
    return status;
  }
  detail::count_meta(context, request);
  if (acts_on_key(request.op)) {
    detail::execute_refused(context, request, result);
    return Status::kOk;
  }
  switch (request.op) {
    case protocol::Op::kNoop:
      result.outcome = protocol::Outcome::kNoop;
      break;
    case protocol::Op::kVersion:
      result.outcome = protocol::Outcome::kVersion;
      break;
    case protocol::Op::kQuit:
      result.outcome = protocol::Outcome::kOk;
      break;
    default:
      set_error(result, request.status);
      break;
  }
  return Status::kOk;
}

// An upper bound of the bytes that emit() writes.
WC_HD inline uint32_t size(const RequestState& state, const protocol::Result& result) {
  const uint32_t frame = protocol::reply_bound(state.request, result);
  return protocol::reply_carries_value(state.request, result) ? frame + result.value_size : frame;
}

// Writes the pieces of a chained value after the first.
WC_HD inline uint8_t* emit_rest(const Context& context, const store::Item& item, uint8_t* out) {
  store::ValuePieces pieces = context.store.pieces(item);
  for (Bytes piece = pieces.next(); !piece.empty(); piece = pieces.next()) out = put(out, piece);
  return out;
}

// Writes the whole reply, value included, and returns its end.
WC_HD inline uint8_t* emit(const Context& context, const RequestState& state,
                           const protocol::Result& result, uint8_t* out) {
  const auto put_value = [&](uint8_t* at) {
    at = put(at, result.value);
    return WC_UNLIKELY(result.chained) ? emit_rest(context, *state.item, at) : at;
  };
  return protocol::compose_reply(state.request, result, context.input, out, put_value);
}

// Requests that are run and answered in one step, since most are of these kinds.
enum class PlainKind : uint8_t {
  kNone,
  kTextGet,
  kMetaValue,  // an mg that shows the value only
  kMetaGet,    // any other that changes nothing
  kSet
};

WC_HD inline PlainKind plain_kind(const protocol::Request& request) {
  if (request.op == protocol::Op::kGet) {
    if (protocol::is_plain_get(request)) return PlainKind::kTextGet;
    if (!protocol::is_plain_meta_get(request)) return PlainKind::kNone;
    return protocol::shows_value_only(request) ? PlainKind::kMetaValue : PlainKind::kMetaGet;
  }
  return is_plain_set(request) ? PlainKind::kSet : PlainKind::kNone;
}

namespace detail {

// Takes what an mg shows of an item, but for the value, as an unlocked execute_read() does. False:
// its time has run out meanwhile, or it has recache marks. These are read last: a change that the
// other words show has made them before.
WC_HD inline bool look_at_item(const Context& context, const store::Item& item,
                               protocol::Result& result) {
  const ItemMoment moment(item);
  if (moment.expired(context.clock.now) || moment.recaching()) return false;
  fill_from_item(context, item, moment, result);
  result.outcome = protocol::Outcome::kHit;
  return true;
}

}  // namespace detail

// execute() and emit() in one step for gets of one kind. Null: the item has recache marks, or its
// value is chained or above `value_size_max` bytes; nothing took effect.
template <PlainKind kKind>
WC_HD inline uint8_t* answer_plain_get(const Context& context, const RequestState& state,
                                       uint32_t value_size_max, uint8_t* out) {
  constexpr bool kMeta = kKind == PlainKind::kMetaValue || kKind == PlainKind::kMetaGet;
  static_assert(kMeta || kKind == PlainKind::kTextGet);
  const protocol::Request& request = state.request;
  const Bytes key = context.key(request);
  const store::Found found = context.store.find(request.hash, key, state.hint);
  protocol::Result shown = {};  // of kMetaGet
  const auto look = [&](const store::Item& item) {
    constexpr uint32_t kMarks = store::kItemStale | store::kItemTokenSent;
    if (item.value_size > value_size_max) return false;
    if (kKind == PlainKind::kMetaGet) return detail::look_at_item(context, item, shown);
    return !kMeta || (item.load_bits() & kMarks) == 0;
  };
  const PlainRead read = read_plain(context, found, look);
  if (read == PlainRead::kOther) return nullptr;
  if (kMeta) context.counters->add(Counter::kCmdMeta);
  if (read == PlainRead::kMiss) {
    if (kMeta) return protocol::compose_plain_meta_miss(request, context.input, out);
    return (request.bits & protocol::kLastKey) != 0 ? put(out, "END\r\n") : out;
  }
  WC_DASSERT(found);
  const store::Item& item = *found.item;
  const Bytes value = {item.value_data(), item.value_size};
  if (kKind == PlainKind::kMetaValue) return protocol::compose_meta_value(value, out);
  if (kMeta) {
    return protocol::compose_plain_meta_hit(request, shown, context.input, value, out);
  }
  return protocol::compose_plain_hit(request, key, item.client_flags, value, out);
}

// All stages for one request. kDeferred: as execute(); else `out` is moved past the reply.
WC_HD inline Status process_request(const Context& context, const protocol::Frame& frame,
                                    uint8_t*& out) {
  RequestState state;
  protocol::Result result;
  decode(context, frame, state);
  locate(context, state);
  const Status status = execute(context, state, result);
  if (status == Status::kOk) out = emit(context, state, result, out);
  return status;
}

}  // namespace warpcache::request
