// SPDX-License-Identifier: Apache-2.0
//
// Turns Results into reply bytes, for every protocol. A reply is a head, the value if it carries
// one, and a tail. compose_reply() writes all of it; or the caller sends the value from its place
// in the store, between compose_head() and compose_tail(). For a command that wants no reply, head
// and tail are empty and there is no value.
#pragma once

#include "base/hd.h"
#include "protocol/compose/compose_binary.h"
#include "protocol/compose/compose_meta.h"
#include "protocol/compose/compose_text.h"
#include "protocol/message.h"

namespace warpcache::protocol {

// Whether `request` gets no reply: noreply, or a quiet command whose result need not be reported.
WC_HD inline bool reply_is_silent(const Request& request, const Result& result) {
  switch (request.protocol) {
    case Protocol::kText:
      return text_is_silent(request);
    case Protocol::kMeta:
      return meta_is_silent(request, result);
    case Protocol::kBinary:
      return binary_is_silent(request, result);
  }
  return false;
}

// Whether result.value (and the rest of its chain) stands between head and tail.
WC_HD inline bool reply_carries_value(const Request& request, const Result& result) {
  switch (request.protocol) {
    case Protocol::kText:
      return text_carries_value(request, result) && !text_is_silent(request);
    case Protocol::kMeta:
      return meta_carries_value(request, result);
    case Protocol::kBinary:
      return binary_carries_value(request, result);
  }
  return false;
}

// An upper bound for the bytes of head and tail together.
WC_HD inline uint32_t reply_bound(const Request& request, const Result& result) {
  if (reply_is_silent(request, result)) return 0;
  switch (request.protocol) {
    case Protocol::kText:
      return text_bound(request, result);
    case Protocol::kMeta:
      return meta_bound(request);
    case Protocol::kBinary:
      return binary_bound(request);
  }
  return 0;
}

// reply_bound() for every result that the request can have.
WC_HD inline uint32_t reply_bound_max(const Request& request) {
  switch (request.protocol) {
    case Protocol::kText: {
      const uint32_t value_frame = kTextValueFrameMax + request.key_size;
      return value_frame > kTextLineMax ? value_frame : kTextLineMax;
    }
    case Protocol::kMeta:
      return meta_bound(request);
    case Protocol::kBinary:
      return binary_bound(request);
  }
  return 0;
}

// Writes the head; returns its end. `input` is the batch's input base, where a base64 key has been
// decoded.
WC_HD inline uint8_t* compose_head(const Request& request, const Result& result,
                                   const uint8_t* input, uint8_t* out) {
  if (reply_is_silent(request, result)) return out;
  switch (request.protocol) {
    case Protocol::kText:
      return compose_text_head(request, result, input, out);
    case Protocol::kMeta:
      return compose_meta_head(request, result, input, out);
    case Protocol::kBinary:
      return compose_binary_head(request, result, input, out);
  }
  return out;
}

// Writes the tail; returns its end.
WC_HD inline uint8_t* compose_tail(const Request& request, const Result& result,
                                   const uint8_t* input, uint8_t* out) {
  (void)input;
  if (reply_is_silent(request, result)) return out;
  switch (request.protocol) {
    case Protocol::kText:
      return compose_text_tail(request, result, out);
    case Protocol::kMeta:
      return compose_meta_tail(request, result, out);
    case Protocol::kBinary:
      return out;
  }
  return out;
}

// Writes the whole reply; returns its end. `put_value` writes the value at the given address and
// returns its end.
template <typename PutValue>
WC_HD inline uint8_t* compose_reply(const Request& request, const Result& result,
                                    const uint8_t* input, uint8_t* out, const PutValue& put_value) {
  switch (request.protocol) {
    case Protocol::kText:
      if (text_is_silent(request)) return out;
      out = compose_text_head(request, result, input, out);
      if (text_carries_value(request, result)) out = put_value(out);
      return compose_text_tail(request, result, out);
    case Protocol::kMeta:
      if (meta_is_silent(request, result)) return out;
      out = compose_meta_head(request, result, input, out);
      if (meta_carries_value(request, result)) out = put_value(out);
      return compose_meta_tail(request, result, out);
    case Protocol::kBinary:
      if (binary_is_silent(request, result)) return out;
      out = compose_binary_head(request, result, input, out);
      return binary_carries_value(request, result) ? put_value(out) : out;
  }
  return out;
}

}  // namespace warpcache::protocol
