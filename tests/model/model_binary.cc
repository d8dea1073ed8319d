// SPDX-License-Identifier: Apache-2.0
//
// The binary protocol.
#include <algorithm>
#include <utility>

#include "model/model.h"

namespace warpcache::model {

namespace {

constexpr size_t kHeaderSize = 24;
constexpr uint32_t kBodyMax = 1u << 30;
constexpr uint32_t kSaslMax = 2048;
constexpr uint32_t kNever = 0xffffffff;  // exptime of a counter that is not to be made

uint64_t number_at(const std::string& bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
  return number;
}

std::string big_endian(uint64_t number, size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = size; i-- > 0; number >>= 8) bytes[i] = static_cast<char>(number & 0xff);
  return bytes;
}

enum Opcode : uint8_t {
  kGet,
  kSet,
  kAdd,
  kReplace,
  kDelete,
  kIncr,
  kDecr,
  kQuit,
  kFlush,
  kGetQ,
  kNoop,
  kVersion,
  kGetK,
  kGetKQ,
  kAppend,
  kPrepend,
  kStat,
  kSetQ,
  kAddQ,
  kReplaceQ,
  kDeleteQ,
  kIncrQ,
  kDecrQ,
  kQuitQ,
  kFlushQ,
  kAppendQ,
  kPrependQ,
  kTouch = 0x1c,
  kGat,
  kGatQ,
  kSaslList = 0x20,
  kSaslAuth,
  kSaslStep,
  kGatK,
  kGatKQ
};

// The quiet opcodes, each beside the one that it is a form of.
uint8_t loud(uint8_t opcode) {
  switch (opcode) {
    case kGetQ:
      return kGet;
    case kGetKQ:
      return kGetK;
    case kSetQ:
      return kSet;
    case kAddQ:
      return kAdd;
    case kReplaceQ:
      return kReplace;
    case kDeleteQ:
      return kDelete;
    case kIncrQ:
      return kIncr;
    case kDecrQ:
      return kDecr;
    case kQuitQ:
      return kQuit;
    case kFlushQ:
      return kFlush;
    case kAppendQ:
      return kAppend;
    case kPrependQ:
      return kPrepend;
    case kGatQ:
      return kGat;
    case kGatKQ:
      return kGatK;
    default:
      return opcode;
  }
}

enum Status : uint16_t {
  kOk = 0,
  kNotFound = 1,
  kExists = 2,
  kTooLarge = 3,
  kInvalid = 4,
  kNotStored = 5,
  kNonNumeric = 6,
  kUnknown = 0x81
};

const char* text_of(uint16_t status) {
  switch (status) {
    case kNotFound:
      return "Not found";
    case kExists:
      return "Data exists for key.";
    case kTooLarge:
      return "Too large.";
    case kInvalid:
      return "Invalid arguments";
    case kNotStored:
      return "Not stored.";
    case kNonNumeric:
      return "Non-numeric server-side value for incr or decr";
    default:
      return "Unknown command";
  }
}

// Times have no sign here.
int64_t time_of(uint64_t exptime) {
  return std::min<int64_t>(static_cast<int64_t>(exptime), INT32_MAX);
}

}  // namespace

struct Model::Packet {
  uint8_t opcode = 0;  // as it came
  uint8_t kind = 0;    // without its quietness
  bool quiet = false;
  std::string opaque;
  uint64_t cas = 0;
  std::string extras, key, value;

  uint64_t extra(size_t at, size_t size) const { return number_at(extras, at, size); }

  void answer(uint16_t status, const std::string& reply_extras, const std::string& reply_key,
              const std::string& reply_value, const Cas* cas_shown, Reply& reply) const {
    const size_t body = reply_extras.size() + reply_key.size() + reply_value.size();
    reply.add(big_endian(0x81, 1) + big_endian(opcode, 1) + big_endian(reply_key.size(), 2) +
              big_endian(reply_extras.size(), 1) + big_endian(0, 1) + big_endian(status, 2) +
              big_endian(body, 4) + opaque);
    if (cas_shown == nullptr) {
      reply.add(big_endian(0, 8));
    } else {
      reply.add_cas_binary(*cas_shown);
    }
    reply.add(reply_extras + reply_key + reply_value);
  }
  void fail(uint16_t status, Reply& reply) const {
    answer(status, "", "", text_of(status), nullptr, reply);
  }
  void succeed(Reply& reply) const {
    if (!quiet) answer(kOk, "", "", "", nullptr, reply);
  }
};

namespace {

// 0, or the status that the header earns. Most errors end the connection.
uint16_t judge(uint8_t kind, size_t extras, size_t key, uint64_t body, bool& closes) {
  closes = true;
  if (key + extras > body) return kUnknown;
  if (body > kBodyMax || key > kKeyMax) return kInvalid;
  bool valid = false;
  switch (kind) {
    case kGet:
    case kGetK:
    case kDelete:
      valid = extras == 0 && key > 0 && body == key;
      break;
    case kTouch:
    case kGat:
    case kGatK:
      valid = extras == 4 && key > 0 && body == key + 4;
      break;
    case kSet:
    case kAdd:
    case kReplace:
      valid = extras == 8 && key > 0;
      break;
    case kAppend:
    case kPrepend:
      valid = extras == 0 && key > 0;
      break;
    case kIncr:
    case kDecr:
      valid = extras == 20 && key > 0 && body == key + 20;
      break;
    case kFlush:
      valid = key == 0 && body == extras && (extras == 0 || extras == 4);
      break;
    case kQuit:
    case kNoop:
    case kVersion:
    case kSaslList:
      valid = body == 0;
      break;
    case kStat:
      valid = extras == 0 && body == key;
      break;
    case kSaslAuth:
    case kSaslStep:
      valid = extras == 0 && key > 0;
      if (valid && body > kSaslMax) {
        closes = false;
        return kUnknown;
      }
      break;
    default:
      closes = false;
      return kUnknown;
  }
  closes = !valid;
  return valid ? kOk : kInvalid;
}

bool stores(uint8_t kind) {
  return kind == kSet || kind == kAdd || kind == kReplace || kind == kAppend || kind == kPrepend;
}

}  // namespace

bool Model::take_binary(Session& session, Reply& reply) {
  if (static_cast<uint8_t>(session.input[0]) != 0x80) {
    session.closed = true;
    return true;
  }
  if (session.input.size() < kHeaderSize) return false;
  Packet packet;
  packet.opcode = static_cast<uint8_t>(session.input[1]);
  packet.kind = loud(packet.opcode);
  packet.quiet = packet.kind != packet.opcode;
  packet.opaque = session.input.substr(12, 4);
  packet.cas = number_at(session.input, 16, 8);
  const size_t key_size = number_at(session.input, 2, 2);
  const size_t extras_size = number_at(session.input, 4, 1);
  const uint64_t body_size = number_at(session.input, 8, 4);
  bool closes = false;
  const uint16_t status = judge(packet.kind, extras_size, key_size, body_size, closes);
  if (status != kOk) {
    packet.fail(status, reply);
    session.input.erase(0, kHeaderSize);
    session.swallow = body_size;
    session.closed = closes;
    return true;
  }
  const size_t head_size = kHeaderSize + extras_size + key_size;
  if (session.input.size() < head_size) return false;
  packet.extras = session.input.substr(kHeaderSize, extras_size);
  packet.key = session.input.substr(kHeaderSize + extras_size, key_size);
  const uint64_t value_size = body_size - extras_size - key_size;
  const uint32_t flags = extras_size == 8 ? static_cast<uint32_t>(packet.extra(0, 4)) : 0;
  if (stores(packet.kind) && too_large(key_size, flags, value_size)) {
    packet.fail(kTooLarge, reply);
    session.input.erase(0, head_size);
    session.swallow = value_size;
    if (packet.kind == kSet) items_.remove(packet.key);
    return true;
  }
  if (session.input.size() < kHeaderSize + body_size) return false;
  packet.value = session.input.substr(head_size, value_size);
  session.input.erase(0, kHeaderSize + body_size);
  run_packet(session, packet, reply);
  return true;
}

void Model::run_packet(Session& session, const Packet& packet, Reply& reply) {
  switch (packet.kind) {
    case kGet:
    case kGetK:
    case kGat:
    case kGatK:
    case kTouch:
      return run_binary_get(packet, reply);
    case kSet:
    case kAdd:
    case kReplace:
    case kAppend:
    case kPrepend:
      return run_binary_store(packet, reply);
    case kIncr:
    case kDecr:
      return run_binary_count(packet, reply);
    case kDelete:
      return run_binary_delete(packet, reply);
    case kFlush: {
      ++administrative_;
      const uint64_t delay = packet.extras.empty() ? 0 : packet.extra(0, 4);
      if (delay > 60 * 60 * 24 * 30) loss_ = "a date for flush";
      items_.flush(time_of(delay));
      return packet.succeed(reply);
    }
    case kQuit:
      session.closed = true;
      return packet.succeed(reply);
    case kNoop:
      return packet.succeed(reply);
    case kVersion:
      return packet.answer(kOk, "", "", config_.version, nullptr, reply);
    case kSaslList:
    case kSaslAuth:
    case kSaslStep:
      return packet.fail(kUnknown, reply);
    default:
      loss_ = "an opcode beyond the model";
  }
}

void Model::run_binary_get(const Packet& packet, Reply& reply) {
  Item* item = items_.find(packet.key);
  const bool shows_key = packet.kind == kGetK || packet.kind == kGatK;
  if (item == nullptr) {
    if (packet.quiet) return;
    if (shows_key) return packet.answer(kNotFound, "", packet.key, "", nullptr, reply);
    return packet.fail(kNotFound, reply);
  }
  items_.note_use(*item);
  if (packet.extras.size() == 4) item->expiry = items_.expiry_of(time_of(packet.extra(0, 4)));
  packet.answer(kOk, big_endian(item->flags, 4), shows_key ? packet.key : "",
                packet.kind == kTouch ? "" : item->value, &item->cas, reply);
}

void Model::run_binary_store(const Packet& packet, Reply& reply) {
  StoreCommand command;
  using Mode = StoreCommand::Mode;
  const bool compares = packet.cas != 0;
  command.key = packet.key;
  command.value = packet.value;
  command.compares = compares;
  command.cas = packet.cas;
  switch (packet.kind) {
    case kAppend:
      command.mode = Mode::kAppend;
      break;
    case kPrepend:
      command.mode = Mode::kPrepend;
      break;
    // With a CAS id all three are the same.
    case kAdd:
      command.mode = compares ? Mode::kSet : Mode::kAdd;
      break;
    case kReplace:
      command.mode = compares ? Mode::kSet : Mode::kReplace;
      break;
    default:
      command.mode = Mode::kSet;
      break;
  }
  if (packet.extras.size() == 8) {
    command.flags = static_cast<uint32_t>(packet.extra(0, 4));
    command.exptime = time_of(packet.extra(4, 4));
  }
  Item* item = nullptr;
  switch (store(command, &item)) {
    case StoreOutcome::kStored:
      if (!packet.quiet) packet.answer(kOk, "", "", "", &item->cas, reply);
      break;
    case StoreOutcome::kExists:
      packet.fail(kExists, reply);
      break;
    case StoreOutcome::kNotFound:
      packet.fail(kNotFound, reply);
      break;
    case StoreOutcome::kNotStored:
      packet.fail(packet.kind == kAdd       ? kExists
                  : packet.kind == kReplace ? kNotFound
                                            : kNotStored,
                  reply);
      break;
  }
}

void Model::run_binary_count(const Packet& packet, Reply& reply) {
  CountCommand command;
  command.key = packet.key;
  command.up = packet.kind == kIncr;
  command.compares = packet.cas != 0;
  command.cas = packet.cas;
  command.delta = packet.extra(0, 8);
  command.initial = packet.extra(8, 8);
  const uint64_t exptime = packet.extra(16, 4);
  command.vivifies = exptime != kNever;
  uint64_t number = 0;
  Item* item = nullptr;
  const CountOutcome outcome = count(command, number, &item);
  if (outcome == CountOutcome::kNotFound) return packet.fail(kNotFound, reply);
  if (outcome == CountOutcome::kExists) return packet.fail(kExists, reply);
  if (outcome == CountOutcome::kNotANumber) return packet.fail(kNonNumeric, reply);
  if (outcome == CountOutcome::kMade) item->expiry = items_.expiry_of(time_of(exptime));
  if (!packet.quiet) packet.answer(kOk, "", "", big_endian(number, 8), &item->cas, reply);
}

void Model::run_binary_delete(const Packet& packet, Reply& reply) {
  const Item* item = items_.find(packet.key);
  if (item == nullptr) return packet.fail(kNotFound, reply);
  if (packet.cas != 0 && compare(packet.cas, item->cas) != CasOrder::kEqual) {
    return packet.fail(kExists, reply);
  }
  items_.remove(packet.key);
  packet.succeed(reply);
}

}  // namespace warpcache::model
