// SPDX-License-Identifier: Apache-2.0
//
// The binary protocol: header, opcodes, and the parsing of messages into Requests. frame() calls
// check_binary_header(), which finds every fault that a header can have, so parsing cannot fail.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/hd.h"
#include "base/mem.h"
#include "protocol/framing/frame_types.h"
#include "protocol/message.h"

namespace warpcache::protocol {

inline constexpr uint8_t kBinaryRequestMagic = 0x80;
inline constexpr uint8_t kBinaryResponseMagic = 0x81;
inline constexpr uint32_t kBinaryHeaderSize = 24;
inline constexpr uint32_t kBinaryBodyMax =
    1u << 30;  // above: the connection is closed, as memcached does
inline constexpr uint32_t kSaslBodyMax = 2048;
inline constexpr uint32_t kExptimeNoVivify = 0xffffffff;

enum BinaryOpcode : uint8_t {
  kOpGet = 0x00,
  kOpSet = 0x01,
  kOpAdd = 0x02,
  kOpReplace = 0x03,
  kOpDelete = 0x04,
  kOpIncrement = 0x05,
  kOpDecrement = 0x06,
  kOpQuit = 0x07,
  kOpFlush = 0x08,
  kOpGetQ = 0x09,
  kOpNoop = 0x0a,
  kOpVersion = 0x0b,
  kOpGetK = 0x0c,
  kOpGetKQ = 0x0d,
  kOpAppend = 0x0e,
  kOpPrepend = 0x0f,
  kOpStat = 0x10,
  kOpSetQ = 0x11,
  kOpAddQ = 0x12,
  kOpReplaceQ = 0x13,
  kOpDeleteQ = 0x14,
  kOpIncrementQ = 0x15,
  kOpDecrementQ = 0x16,
  kOpQuitQ = 0x17,
  kOpFlushQ = 0x18,
  kOpAppendQ = 0x19,
  kOpPrependQ = 0x1a,
  kOpTouch = 0x1c,
  kOpGat = 0x1d,
  kOpGatQ = 0x1e,
  kOpSaslListMechanisms = 0x20,
  kOpSaslAuth = 0x21,
  kOpSaslStep = 0x22,
  kOpGatK = 0x23,
  kOpGatKQ = 0x24,
};

enum BinaryStatus : uint16_t {
  kBinaryOk = 0x00,
  kBinaryNotFound = 0x01,
  kBinaryExists = 0x02,
  kBinaryTooLarge = 0x03,
  kBinaryInvalidArguments = 0x04,
  kBinaryNotStored = 0x05,
  kBinaryNonNumeric = 0x06,
  kBinaryAuthError = 0x20,
  kBinaryAuthContinue = 0x21,
  kBinaryUnknownCommand = 0x81,
  kBinaryOutOfMemory = 0x82,
};

// A request's header in host byte order, except `opaque`, which is only copied to the reply.
struct BinaryHeader {
  uint64_t cas;
  uint32_t body_size;  // extras, key and value
  uint32_t opaque;
  uint16_t key_size;
  uint8_t extras_size;
  uint8_t opcode;

  // REQUIRES: check_binary_header() was successful; otherwise the difference can wrap.
  WC_HD uint32_t value_size() const { return body_size - key_size - extras_size; }
};

// REQUIRES: kBinaryHeaderSize bytes at `from`.
WC_HD inline BinaryHeader load_binary_header(const uint8_t* from) {
  BinaryHeader header;
  header.opcode = from[1];
  header.key_size = load_big16(from + 2);
  header.extras_size = from[4];
  header.body_size = load_big32(from + 8);
  header.opaque = load_as<uint32_t>(from + 12);
  header.cas = load_big64(from + 16);
  return header;
}

// Groups of opcodes whose requests have the same layout; quiet forms are in the same group.
enum class BinaryForm : uint8_t {
  kUnknown,
  kBare,
  kKey,
  kKeyAndTime,
  kStore,
  kJoin,
  kDelta,
  kFlush,
  kStat,
  kSasl
};

WC_HD inline BinaryForm binary_form(uint8_t opcode) {
  switch (opcode) {
    case kOpGet:
    case kOpGetQ:
    case kOpGetK:
    case kOpGetKQ:
    case kOpDelete:
    case kOpDeleteQ:
      return BinaryForm::kKey;
    case kOpSet:
    case kOpSetQ:
    case kOpAdd:
    case kOpAddQ:
    case kOpReplace:
    case kOpReplaceQ:
      return BinaryForm::kStore;
    case kOpAppend:
    case kOpAppendQ:
    case kOpPrepend:
    case kOpPrependQ:
      return BinaryForm::kJoin;
    case kOpIncrement:
    case kOpIncrementQ:
    case kOpDecrement:
    case kOpDecrementQ:
      return BinaryForm::kDelta;
    case kOpTouch:
    case kOpGat:
    case kOpGatQ:
    case kOpGatK:
    case kOpGatKQ:
      return BinaryForm::kKeyAndTime;
    case kOpQuit:
    case kOpQuitQ:
    case kOpNoop:
    case kOpVersion:
    case kOpSaslListMechanisms:
      return BinaryForm::kBare;
    case kOpFlush:
    case kOpFlushQ:
      return BinaryForm::kFlush;
    case kOpStat:
      return BinaryForm::kStat;
    case kOpSaslAuth:
    case kOpSaslStep:
      return BinaryForm::kSasl;
    default:
      return BinaryForm::kUnknown;
  }
}

WC_HD inline bool binary_stores(uint8_t opcode) {
  const BinaryForm form = binary_form(opcode);
  return form == BinaryForm::kStore || form == BinaryForm::kJoin;
}

// kOk, or the error that answers the message. `closes`: the connection must be closed after it,
// because the start of the next header is not known.
WC_HD inline Status check_binary_header(const BinaryHeader& header, bool& closes) {
  closes = true;
  const uint32_t key = header.key_size;
  const uint32_t extras = header.extras_size;
  const uint32_t body = header.body_size;
  if (key + extras > body) return Status::kUnknownCommand;
  if (body > kBinaryBodyMax) return Status::kInvalidArguments;
  if (key > kKeySizeMax) return Status::kInvalidArguments;
  bool valid = false;
  switch (binary_form(header.opcode)) {
    case BinaryForm::kBare:
      valid = body == 0;
      break;
    case BinaryForm::kKey:
      valid = extras == 0 && key != 0 && body == key;
      break;
    case BinaryForm::kKeyAndTime:
      valid = extras == 4 && key != 0 && body == key + 4;
      break;
    case BinaryForm::kStore:
      valid = extras == 8 && key != 0;
      break;
    case BinaryForm::kJoin:
      valid = extras == 0 && key != 0;
      break;
    case BinaryForm::kDelta:
      valid = extras == 20 && key != 0 && body == key + 20;
      break;
    case BinaryForm::kFlush:
      valid = key == 0 && body == extras && (extras == 0 || extras == 4);
      break;
    case BinaryForm::kStat:
      valid = extras == 0 && body == key;
      break;
    case BinaryForm::kSasl:
      valid = extras == 0 && key != 0;
      break;
    case BinaryForm::kUnknown:
      break;
  }
  if (valid) {
    closes = false;
    const bool unheard = binary_form(header.opcode) == BinaryForm::kSasl && body > kSaslBodyMax;
    return unheard ? Status::kUnknownCommand : Status::kOk;
  }
  if (binary_form(header.opcode) != BinaryForm::kUnknown) return Status::kInvalidArguments;
  closes = false;
  return Status::kUnknownCommand;
}

namespace binary_detail {

struct Meaning {
  Op op;
  uint32_t bits;
};

WC_HD inline Meaning meaning_of(uint8_t opcode) {
  constexpr uint32_t kValue = kReturnValue;
  switch (opcode) {
    case kOpGet:
      return {Op::kGet, kValue};
    case kOpGetQ:
      return {Op::kGet, kValue | kQuiet};
    case kOpGetK:
      return {Op::kGet, kValue | kReturnKey};
    case kOpGetKQ:
      return {Op::kGet, kValue | kReturnKey | kQuiet};
    case kOpGat:
      return {Op::kGet, kValue | kTouchBit};
    case kOpGatQ:
      return {Op::kGet, kValue | kTouchBit | kQuiet};
    case kOpGatK:
      return {Op::kGet, kValue | kTouchBit | kReturnKey};
    case kOpGatKQ:
      return {Op::kGet, kValue | kTouchBit | kReturnKey | kQuiet};
    case kOpTouch:
      return {Op::kTouch, 0};
    case kOpSet:
      return {Op::kSet, 0};
    case kOpSetQ:
      return {Op::kSet, kQuiet};
    case kOpAdd:
      return {Op::kAdd, 0};
    case kOpAddQ:
      return {Op::kAdd, kQuiet};
    case kOpReplace:
      return {Op::kReplace, 0};
    case kOpReplaceQ:
      return {Op::kReplace, kQuiet};
    case kOpAppend:
      return {Op::kAppend, 0};
    case kOpAppendQ:
      return {Op::kAppend, kQuiet};
    case kOpPrepend:
      return {Op::kPrepend, 0};
    case kOpPrependQ:
      return {Op::kPrepend, kQuiet};
    case kOpDelete:
      return {Op::kDelete, 0};
    case kOpDeleteQ:
      return {Op::kDelete, kQuiet};
    case kOpIncrement:
      return {Op::kIncr, 0};
    case kOpIncrementQ:
      return {Op::kIncr, kQuiet};
    case kOpDecrement:
      return {Op::kDecr, 0};
    case kOpDecrementQ:
      return {Op::kDecr, kQuiet};
    case kOpQuit:
      return {Op::kQuit, 0};
    case kOpQuitQ:
      return {Op::kQuit, kQuiet};
    case kOpFlush:
      return {Op::kFlushAll, 0};
    case kOpFlushQ:
      return {Op::kFlushAll, kQuiet};
    case kOpNoop:
      return {Op::kNoop, 0};
    case kOpVersion:
      return {Op::kVersion, 0};
    case kOpStat:
      return {Op::kStats, 0};
    case kOpSaslListMechanisms:
    case kOpSaslAuth:
    case kOpSaslStep:
      return {Op::kSasl, 0};
    default:
      return {Op::kInvalid, 0};
  }
}

// Times are unsigned in this protocol, so none is negative. Times after 2038 become the largest
// one.
WC_HD inline int32_t exptime_of(uint32_t exptime) {
  return exptime > INT32_MAX ? INT32_MAX : static_cast<int32_t>(exptime);
}

WC_HD inline void read_extras(const uint8_t* extras, const BinaryHeader& header, Request& request) {
  switch (binary_form(header.opcode)) {
    case BinaryForm::kStore:
      request.client_flags = load_big32(extras);
      request.exptime = exptime_of(load_big32(extras + 4));
      break;
    case BinaryForm::kKeyAndTime:
      request.exptime = exptime_of(load_big32(extras));
      break;
    case BinaryForm::kDelta: {
      request.delta = load_big64(extras);
      request.initial = load_big64(extras + 8);
      const uint32_t exptime = load_big32(extras + 16);
      if (exptime != kExptimeNoVivify) request.bits |= kVivify;
      request.vivify_exptime = exptime_of(exptime);
      break;
    }
    case BinaryForm::kFlush:
      if (header.extras_size != 0) request.exptime = exptime_of(load_big32(extras));
      break;
    default:
      break;
  }
}

}  // namespace binary_detail

// Parses the head of a message: header, extras and key. Pure.
WC_HD inline void parse_binary_head(const uint8_t* base, uint32_t offset, Request& request) {
  const BinaryHeader header = load_binary_header(base + offset);
  const binary_detail::Meaning meaning = binary_detail::meaning_of(header.opcode);
  request.protocol = Protocol::kBinary;
  request.op = meaning.op;
  request.bits = meaning.bits;
  request.binary_opcode = header.opcode;
  request.opaque = header.opaque;
  request.key_offset = offset + kBinaryHeaderSize + header.extras_size;
  request.key_size = static_cast<uint8_t>(header.key_size);
  binary_detail::read_extras(base + offset + kBinaryHeaderSize, header, request);
  if (header.cas != 0) {
    request.cas_compare = header.cas;
    request.bits |= kCasCompare;
    // memcached makes a compare-and-swap of all three.
    if (request.op == Op::kAdd || request.op == Op::kReplace) request.op = Op::kSet;
  }
  if (request.op == Op::kStats) {
    request.value_offset = request.key_offset;
    request.value_size = request.key_size;
  }
}

// Fills what the error reply needs, of a message that check_binary_header() has refused.
WC_HD inline void parse_binary_invalid(const uint8_t* base, const Frame& frame, Request& request) {
  const BinaryHeader header = load_binary_header(base + frame.offset);
  request.protocol = Protocol::kBinary;
  request.op = Op::kInvalid;
  request.status = static_cast<Status>(frame.detail);
  request.binary_opcode = header.opcode;
  request.opaque = header.opaque;
}

}  // namespace warpcache::protocol
