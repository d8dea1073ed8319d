// SPDX-License-Identifier: Apache-2.0
//
// The texts of errors, as clients know them.
#pragma once

#include "base/bytes.h"
#include "base/hd.h"
#include "base/status.h"
#include "protocol/message.h"

namespace warpcache::protocol {

inline constexpr uint32_t kErrorTextMax = 80;  // bytes of any text below, line end included

namespace error_detail {

template <size_t kSize>
WC_HD inline Bytes literal(const char (&text)[kSize]) {
  static_assert(kSize + 1 <= kErrorTextMax);
  return {reinterpret_cast<const uint8_t*>(text), kSize - 1};
}

WC_HD inline Bytes out_of_memory_text(Op op) {
  switch (op) {
    case Op::kGet:
      return literal("SERVER_ERROR out of memory writing get response");
    case Op::kDelete:
    case Op::kIncr:
    case Op::kDecr:
      return literal("SERVER_ERROR out of memory");
    case Op::kStats:
      return literal("SERVER_ERROR out of memory writing stats");
    default:
      return literal("SERVER_ERROR out of memory storing object");
  }
}

}  // namespace error_detail

// The error line of text and meta, without line end.
WC_HD inline Bytes error_text(Op op, Status status) {
  using error_detail::literal;
  switch (status) {
    case Status::kUnknownCommand:
      return literal("ERROR");
    case Status::kBadDataChunk:
      return literal("CLIENT_ERROR bad data chunk");
    case Status::kBadExptime:
      return literal("CLIENT_ERROR invalid exptime argument");
    case Status::kBadDelta:
      return literal("CLIENT_ERROR invalid numeric delta argument");
    case Status::kNonNumeric:
      return literal("CLIENT_ERROR cannot increment or decrement non-numeric value");
    case Status::kBadFlag:
      return literal("CLIENT_ERROR invalid flag");
    case Status::kDuplicateFlag:
      return literal("CLIENT_ERROR duplicate flag");
    case Status::kBadFlags:
      return literal("CLIENT_ERROR invalid or duplicate flag");
    case Status::kTooManyFlags:
      return literal("CLIENT_ERROR options flags are too long");
    case Status::kBadToken:
      return literal("CLIENT_ERROR bad token in command line format");
    case Status::kBadOpaque:
      return literal("CLIENT_ERROR opaque token too long");
    case Status::kBadKeyEncoding:
      return literal("CLIENT_ERROR error decoding key");
    case Status::kBadInitial:
      return literal("CLIENT_ERROR invalid numeric initial value");
    case Status::kBadMetaDelta:
      return literal("CLIENT_ERROR invalid numeric delta value");
    case Status::kBadSetMode:
      return literal("CLIENT_ERROR invalid mode for ms M token");
    case Status::kBadArithmeticMode:
      return literal("CLIENT_ERROR invalid mode for ma M token");
    case Status::kTooLarge:
      return literal("SERVER_ERROR object too large for cache");
    case Status::kOutOfMemory:
      return error_detail::out_of_memory_text(op);
    case Status::kOverShare:
      return literal("SERVER_ERROR value exceeds the memory of one client");
    case Status::kNotSupported:
      return literal("SERVER_ERROR not supported");
    case Status::kUnauthenticated:
      return literal("CLIENT_ERROR unauthenticated");
    case Status::kFlushDisabled:
      return literal("CLIENT_ERROR flush_all not allowed");
    case Status::kShutdownDisabled:
      return literal("SERVER_ERROR: shutdown not enabled");
    default:
      return literal("CLIENT_ERROR bad command line format");
  }
}

}  // namespace warpcache::protocol
