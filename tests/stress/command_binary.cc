// SPDX-License-Identifier: Apache-2.0
//
// The binary protocol.
#include "base/assert.h"
#include "client/codec/binary.h"
#include "stress/command.h"

namespace warpcache::stress::detail {

namespace {

constexpr uint32_t kNoVivify = 0xffffffff;

using client::append_big;
using client::BinaryPacket;

uint8_t opcode_of(const Operation& op) {
  switch (op.kind) {
    case Kind::kGet:
      return op.has(kTouches) ? 0x1d : 0x00;
    case Kind::kSet:
      return 0x01;
    case Kind::kAdd:
      return 0x02;
    case Kind::kReplace:
      return 0x03;
    case Kind::kDelete:
      return 0x04;
    case Kind::kIncr:
      return 0x05;
    case Kind::kDecr:
      return 0x06;
    case Kind::kFlush:
      return 0x08;
    case Kind::kAppend:
      return 0x0e;
    case Kind::kPrepend:
      return 0x0f;
    case Kind::kTouch:
      return 0x1c;
    case Kind::kEvict:
      break;
  }
  WC_ASSERT(false);
  return 0;
}

std::string extras_of(const Operation& op) {
  std::string extras;
  const uint32_t exptime = static_cast<uint32_t>(op.exptime);
  if (op.kind == Kind::kSet || op.kind == Kind::kAdd || op.kind == Kind::kReplace) {
    append_big(op.flags, 4, &extras);
    append_big(exptime, 4, &extras);
  } else if (op.kind == Kind::kIncr || op.kind == Kind::kDecr) {
    append_big(op.delta, 8, &extras);
    append_big(op.initial, 8, &extras);
    append_big(op.has(kVivifies) ? static_cast<uint32_t>(op.vivify_exptime) : kNoVivify, 4,
               &extras);
  } else if (op.kind == Kind::kTouch || op.has(kTouches)) {
    append_big(exptime, 4, &extras);
  }
  return extras;
}

bool take_packet(std::string_view* replies, uint8_t opcode, uint32_t opaque, BinaryPacket* reply) {
  return client::take_reply(replies, reply) == client::Taken::kWhole &&
         reply->header.opcode == opcode && reply->header.opaque == opaque && reply->key.empty();
}

Outcome failure_of(const Operation& op, uint16_t status) {
  switch (status) {
    case client::kBinaryNotFound:
      if (op.kind == Kind::kGet) return Outcome::kMiss;
      return op.kind == Kind::kReplace && !op.has(kComparesCas) ? Outcome::kNotStored
                                                                : Outcome::kNotFound;
    case client::kBinaryExists:
      return op.kind == Kind::kAdd ? Outcome::kNotStored : Outcome::kExists;
    case client::kBinaryNotStored:
      return Outcome::kNotStored;
    case client::kBinaryNonNumeric:
      return Outcome::kNonNumeric;
    case client::kBinaryNoMemory:
      return Outcome::kNoMemory;
    default:
      return Outcome::kUnknown;
  }
}

void show_cas(const BinaryPacket& reply, Operation& op) {
  op.seen_cas = reply.header.cas;
  op.shown |= kShowsCas;
}

bool show_flags(const BinaryPacket& reply, Operation& op) {
  if (reply.extras.size() != 4) return false;
  op.seen_flags = static_cast<uint32_t>(client::big(reply.extras));
  op.shown |= kShowsFlags;
  return true;
}

bool decode_success(const BinaryPacket& reply, Operation& op) {
  switch (op.kind) {
    case Kind::kGet:
      op.outcome = Outcome::kHit;
      op.seen = value_of(reply.value);
      op.shown |= kShowsValue;
      show_cas(reply, op);
      return show_flags(reply, op);
    case Kind::kTouch:
      op.outcome = Outcome::kTouched;
      show_cas(reply, op);
      return show_flags(reply, op);
    case Kind::kDelete:
      op.outcome = Outcome::kDeleted;
      return true;
    case Kind::kFlush:
      op.outcome = Outcome::kOk;
      return true;
    case Kind::kIncr:
    case Kind::kDecr:
      if (reply.value.size() != 8) return false;
      op.outcome = Outcome::kNumber;
      op.seen_number = client::big(reply.value);
      show_cas(reply, op);
      return true;
    default:
      op.outcome = Outcome::kStored;
      show_cas(reply, op);
      return true;
  }
}

}  // namespace

void encode_binary(const Operation& op, std::string_view body, uint32_t opaque, std::string* out) {
  const std::string key = op.kind == Kind::kFlush ? "" : key_name(op.key);
  const std::string extras = extras_of(op);
  const uint64_t cas = op.has(kComparesCas) ? op.cas_compare : 0;
  client::append_request({opcode_of(op), opaque, cas, extras, key, body}, out);
}

bool decode_binary(Operation& op, uint32_t opaque, std::string_view* replies) {
  op.shown = 0;
  BinaryPacket reply;
  if (!take_packet(replies, opcode_of(op), opaque, &reply)) return false;
  if (reply.header.status == client::kBinaryOk) return decode_success(reply, op);
  op.outcome = failure_of(op, reply.header.status);
  return op.outcome != Outcome::kUnknown;
}

}  // namespace warpcache::stress::detail
