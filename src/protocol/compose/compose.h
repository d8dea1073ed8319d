// SPDX-License-Identifier: Apache-2.0
//
// From Results to reply bytes, whatever the protocol. A reply is a head, then the value if it
// carries one, then a tail: compose_reply() writes it as one, or the caller sends the value from
// where it lies, between compose_head() and compose_tail(). Commands that want no answer get none:
// head and tail are empty then and no value is carried.
#pragma once

#include "base/hd.h"
#include "protocol/compose/compose_binary.h"
#include "protocol/compose/compose_meta.h"
#include "protocol/compose/compose_text.h"
#include "protocol/message.h"

namespace warpcache::protocol {

// Whether `request` is answered with nothing: noreply, or a quiet form whose result is of no
// interest.
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

// Whether result.value (and what continues it) stands between head and tail.
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

// An upper bound of the bytes of head and tail together.
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

// The same for any result that the request can have.
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

// Writes the head; returns its end. `input` is the batch's input base, with the key decoded if it
// was base64.
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

// The whole reply: `put_value` writes the value at the place that it is given and returns its end.
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
