// SPDX-License-Identifier: Apache-2.0
//
// The binary protocol.
#include "base/assert.h"
#include "base/mem.h"
#include "stress/command.h"

namespace warpcache::stress::detail {

namespace {

constexpr size_t kHeaderSize = 24;
constexpr uint32_t kNoVivify = 0xffffffff;

enum ReplyStatus : uint16_t {
  kStatusOk = 0x00,
  kStatusNotFound = 0x01,
  kStatusExists = 0x02,
  kStatusNotStored = 0x05,
  kStatusNonNumeric = 0x06,
  kStatusNoMemory = 0x82,
};

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

void put32(uint32_t value, std::string* out) {
  uint8_t bytes[4];
  store_big32(bytes, value);
  out->append(reinterpret_cast<const char*>(bytes), sizeof(bytes));
}

void put64(uint64_t value, std::string* out) {
  uint8_t bytes[8];
  store_big64(bytes, value);
  out->append(reinterpret_cast<const char*>(bytes), sizeof(bytes));
}

std::string extras_of(const Operation& op) {
  std::string extras;
  const uint32_t exptime = static_cast<uint32_t>(op.exptime);
  if (op.kind == Kind::kSet || op.kind == Kind::kAdd || op.kind == Kind::kReplace) {
    put32(op.flags, &extras);
    put32(exptime, &extras);
  } else if (op.kind == Kind::kIncr || op.kind == Kind::kDecr) {
    put64(op.delta, &extras);
    put64(op.initial, &extras);
    put32(op.has(kVivifies) ? static_cast<uint32_t>(op.vivify_exptime) : kNoVivify, &extras);
  } else if (op.kind == Kind::kTouch || op.has(kTouches)) {
    put32(exptime, &extras);
  }
  return extras;
}

struct Reply {
  uint16_t status = 0;
  uint64_t cas = 0;
  std::string_view extras;
  std::string_view value;
};

bool take_reply(std::string_view* replies, uint8_t opcode, uint32_t opaque, Reply* reply) {
  if (replies->size() < kHeaderSize) return false;
  const auto* head = reinterpret_cast<const uint8_t*>(replies->data());
  const size_t key = load_big16(head + 2);
  const size_t extras = head[4];
  const size_t body = load_big32(head + 8);
  if (head[0] != 0x81 || head[1] != opcode || load_big32(head + 12) != opaque) return false;
  if (key != 0 || extras > body || replies->size() < kHeaderSize + body) return false;
  reply->status = load_big16(head + 6);
  reply->cas = load_big64(head + 16);
  reply->extras = replies->substr(kHeaderSize, extras);
  reply->value = replies->substr(kHeaderSize + extras, body - extras);
  replies->remove_prefix(kHeaderSize + body);
  return true;
}

Outcome failure_of(const Operation& op, uint16_t status) {
  switch (status) {
    case kStatusNotFound:
      if (op.kind == Kind::kGet) return Outcome::kMiss;
      return op.kind == Kind::kReplace && !op.has(kComparesCas) ? Outcome::kNotStored
                                                                : Outcome::kNotFound;
    case kStatusExists:
      return op.kind == Kind::kAdd ? Outcome::kNotStored : Outcome::kExists;
    case kStatusNotStored:
      return Outcome::kNotStored;
    case kStatusNonNumeric:
      return Outcome::kNonNumeric;
    case kStatusNoMemory:
      return Outcome::kNoMemory;
    default:
      return Outcome::kUnknown;
  }
}

void show_cas(const Reply& reply, Operation& op) {
  op.seen_cas = reply.cas;
  op.shown |= kShowsCas;
}

bool show_flags(const Reply& reply, Operation& op) {
  if (reply.extras.size() != 4) return false;
  op.seen_flags = load_big32(reply.extras.data());
  op.shown |= kShowsFlags;
  return true;
}

bool decode_success(const Reply& reply, Operation& op) {
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
      op.seen_number = load_big64(reply.value.data());
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
  uint8_t head[kHeaderSize] = {0x80, opcode_of(op)};
  store_big16(head + 2, static_cast<uint16_t>(key.size()));
  head[4] = static_cast<uint8_t>(extras.size());
  store_big32(head + 8, static_cast<uint32_t>(extras.size() + key.size() + body.size()));
  store_big32(head + 12, opaque);
  store_big64(head + 16, op.has(kComparesCas) ? op.cas_compare : 0);
  out->append(reinterpret_cast<const char*>(head), kHeaderSize);
  *out += extras;
  *out += key;
  *out += body;
}

bool decode_binary(Operation& op, uint32_t opaque, std::string_view* replies) {
  op.shown = 0;
  Reply reply;
  if (!take_reply(replies, opcode_of(op), opaque, &reply)) return false;
  if (reply.status == kStatusOk) return decode_success(reply, op);
  op.outcome = failure_of(op, reply.status);
  return op.outcome != Outcome::kUnknown;
}

}  // namespace warpcache::stress::detail
