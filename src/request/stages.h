// SPDX-License-Identifier: Apache-2.0
//
// The way of one request: decode, locate, execute, size, emit. process_request() composes them for
// one request; engines run them stage by stage over a batch, so that the memory accesses of one
// request overlap with the work on others. decode() and locate() are pure look-ahead: they have no
// effect, and execute() trusts what they found for nothing but where to look first.
#pragma once

#include "protocol/compose/compose.h"
#include "protocol/parse/parse.h"
#include "request/change.h"
#include "request/read.h"
#include "request/state.h"
#include "request/write.h"

namespace warpcache::request {

// Commands that act on one key of the store.
WC_HD inline bool acts_on_key(protocol::Op op) { return op <= protocol::Op::kTouch; }

// Commands that the engine hands to its AdminHandler.
WC_HD inline bool is_administrative(protocol::Op op) {
  return op >= protocol::Op::kMetaDebug && op <= protocol::Op::kSasl;
}

// Frame to Request, and the first line of the index on its way into the cache.
WC_HD inline void decode(const Context& context, const protocol::Frame& frame,
                         RequestState& state) {
  protocol::parse_request(frame, context.input, state.request);
  state.hint = {};
  state.item = nullptr;
  state.bytes_wanted = 0;
  state.pin = 0;
  if (!acts_on_key(state.request.op)) return;
  state.request.hash = context.store.hash(context.key(state.request));
  context.store.prefetch_set(state.request.hash);
}

// Probes the tags and sends for the item.
WC_HD inline void locate(const Context& context, RequestState& state) {
  if (acts_on_key(state.request.op)) state.hint = context.store.probe(state.request.hash);
}

namespace detail {

// A storage command that framing has refused: too large, no memory for its body, or a body without
// its line end.
WC_HD inline void execute_refused(const Context& context, const protocol::Request& request,
                                  protocol::Result& result) {
  if (request.status == Status::kTooLarge) context.counters->add(Counter::kStoreTooLarge);
  if (request.status == Status::kOutOfMemory) context.counters->add(Counter::kStoreNoMemory);
  if ((request.bits & protocol::kDropOld) != 0) drop_old_value(context, request);
  set_error(result, request.status);
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

// Takes effect and says with what result. kDeferred: nothing took effect and `result` means
// nothing; run it again after Store::reclaim(state.bytes_wanted), with Context::out_of_memory if
// that failed. REQUIRES: the thread is inside an epoch, and the request is not administrative.
WC_HD inline Status execute(const Context& context, RequestState& state, protocol::Result& result) {
  result = {};
  const protocol::Request& request = state.request;
  if (request.protocol == protocol::Protocol::kMeta) context.counters->add(Counter::kCmdMeta);
  if (acts_on_key(request.op)) {
    if (WC_LIKELY(request.status == Status::kOk))
      return detail::execute_on_key(context, state, result);
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

// The pieces of a chained value behind its first.
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

// All stages for one request. kDeferred as for execute(); else `out` is moved past the reply.
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
