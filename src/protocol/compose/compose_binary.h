// SPDX-License-Identifier: Apache-2.0
//
// Replies of the binary protocol.
#pragma once

#include "base/mem.h"
#include "protocol/binary.h"
#include "protocol/compose/error_text.h"
#include "protocol/message.h"
#include "protocol/version.h"

namespace warpcache::protocol {

inline constexpr uint32_t kBinaryTextMax = 64;  // text of an error or of the version

WC_HD inline bool binary_carries_value(const Request& request, const Result& result) {
  return request.op == Op::kGet && result.outcome == Outcome::kHit;
}

// Quiet commands do not answer a miss of a read, nor the success of any other command. Errors are
// always sent.
WC_HD inline bool binary_is_silent(const Request& request, const Result& result) {
  if ((request.bits & kQuiet) == 0) return false;
  switch (result.outcome) {
    case Outcome::kMiss:
    case Outcome::kStored:
    case Outcome::kDeleted:
    case Outcome::kNumber:
    case Outcome::kOk:
      return true;
    default:
      return false;
  }
}

WC_HD inline uint32_t binary_bound(const Request& request) {
  return kBinaryHeaderSize + 4 + request.key_size + kBinaryTextMax;
}

// Sizes in bytes; the body is extras, key and value.
struct BinaryReply {
  uint16_t status = kBinaryOk;
  uint16_t key_size = 0;
  uint8_t extras_size = 0;
  uint32_t value_size = 0;
  uint64_t cas = 0;
};

// Writes the header; returns its end.
WC_HD inline uint8_t* put_binary_header(uint8_t opcode, uint32_t opaque, const BinaryReply& reply,
                                        uint8_t* out) {
  out[0] = kBinaryResponseMagic;
  out[1] = opcode;
  store_big16(out + 2, reply.key_size);
  out[4] = reply.extras_size;
  out[5] = 0;
  store_big16(out + 6, reply.status);
  store_big32(out + 8, uint32_t{reply.extras_size} + reply.key_size + reply.value_size);
  store_as(out + 12, opaque);
  store_big64(out + 16, reply.cas);
  return out + kBinaryHeaderSize;
}

namespace binary_detail {

struct Answer {
  uint16_t status;
  Bytes text;
};

template <size_t kSize>
WC_HD inline Answer answer(uint16_t status, const char (&text)[kSize]) {
  static_assert(kSize <= kBinaryTextMax);
  return {status, {reinterpret_cast<const uint8_t*>(text), kSize - 1}};
}

WC_HD inline Answer out_of_memory(Op op) {
  switch (op) {
    case Op::kIncr:
    case Op::kDecr:
      return answer(kBinaryOutOfMemory, "Out of memory incrementing value");
    case Op::kStats:
      return answer(kBinaryOutOfMemory, "Out of memory generating stats");
    case Op::kGet:
      return answer(kBinaryOutOfMemory, "Out of memory");
    default:
      return answer(kBinaryOutOfMemory, "Out of memory allocating item");
  }
}

WC_HD inline Answer not_found() { return answer(kBinaryNotFound, "Not found"); }
WC_HD inline Answer exists() { return answer(kBinaryExists, "Data exists for key."); }

WC_HD inline Answer error_answer(Op op, Status status) {
  switch (status) {
    case Status::kUnknownCommand:
    case Status::kNotSupported:
      return answer(kBinaryUnknownCommand, "Unknown command");
    case Status::kTooLarge:
      return answer(kBinaryTooLarge, "Too large.");
    case Status::kOverShare:
      return answer(kBinaryTooLarge, "Value exceeds the memory of one client");
    case Status::kOutOfMemory:
      return out_of_memory(op);
    case Status::kNonNumeric:
      return answer(kBinaryNonNumeric, "Non-numeric server-side value for incr or decr");
    case Status::kUnauthenticated:
    case Status::kFlushDisabled:
      return answer(kBinaryAuthError, "Auth failure.");
    default:
      return answer(kBinaryInvalidArguments, "Invalid arguments");
  }
}

// REQUIRES: the outcome is not a success.
WC_HD inline Answer failure_answer(const Request& request, const Result& result) {
  switch (result.outcome) {
    case Outcome::kExists:
      return exists();
    case Outcome::kNotStored:
      if (request.op == Op::kAdd) return exists();
      if (request.op == Op::kReplace) return not_found();
      return answer(kBinaryNotStored, "Not stored.");
    case Outcome::kError:
      return error_answer(request.op, result.status);
    default:
      return not_found();
  }
}

WC_HD inline uint8_t* put_failure(const Request& request, const Result& result, uint8_t* out) {
  const Answer failure = failure_answer(request, result);
  BinaryReply reply;
  reply.status = failure.status;
  reply.value_size = static_cast<uint32_t>(failure.text.size);
  out = put_binary_header(request.binary_opcode, request.opaque, reply, out);
  return put(out, failure.text);
}

// Writes the reply to a hit up to its value: flags, and the key where it is asked for.
WC_HD inline uint8_t* put_found(const Request& request, const Result& result, const uint8_t* input,
                                uint8_t* out) {
  BinaryReply reply;
  reply.cas = result.cas;
  reply.extras_size = 4;
  if (binary_carries_value(request, result)) reply.value_size = result.value_size;
  if ((request.bits & kReturnKey) != 0) reply.key_size = request.key_size;
  out = put_binary_header(request.binary_opcode, request.opaque, reply, out);
  store_big32(out, result.client_flags);
  return put(out + 4, Bytes{input + request.key_offset, reply.key_size});
}

WC_HD inline uint8_t* put_keyed_miss(const Request& request, const uint8_t* input, uint8_t* out) {
  BinaryReply reply;
  reply.status = kBinaryNotFound;
  reply.key_size = request.key_size;
  out = put_binary_header(request.binary_opcode, request.opaque, reply, out);
  return put(out, Bytes{input + request.key_offset, request.key_size});
}

WC_HD inline uint8_t* put_success(const Request& request, const Result& result, uint8_t* out) {
  BinaryReply reply;
  const bool number = result.outcome == Outcome::kNumber;
  const bool version = result.outcome == Outcome::kVersion;
  if (number || result.outcome == Outcome::kStored) reply.cas = result.cas;
  if (number) reply.value_size = 8;
  if (version) reply.value_size = static_cast<uint32_t>(server_version().size);
  out = put_binary_header(request.binary_opcode, request.opaque, reply, out);
  if (version) return put(out, server_version());
  if (!number) return out;
  store_big64(out, result.number);
  return out + 8;
}

}  // namespace binary_detail

WC_HD inline uint8_t* compose_binary_head(const Request& request, const Result& result,
                                          const uint8_t* input, uint8_t* out) {
  switch (result.outcome) {
    case Outcome::kHit:
    case Outcome::kTouched:
      return binary_detail::put_found(request, result, input, out);
    case Outcome::kMiss:
      if ((request.bits & kReturnKey) != 0) {
        return binary_detail::put_keyed_miss(request, input, out);
      }
      return binary_detail::put_failure(request, result, out);
    case Outcome::kStored:
    case Outcome::kDeleted:
    case Outcome::kNumber:
    case Outcome::kOk:
    case Outcome::kVersion:
    case Outcome::kNoop:
      return binary_detail::put_success(request, result, out);
    default:
      return binary_detail::put_failure(request, result, out);
  }
}

}  // namespace warpcache::protocol
