// SPDX-License-Identifier: Apache-2.0
//
// The classic text commands.
#include "client/codec/words.h"
#include "stress/command.h"

namespace warpcache::stress::detail {

namespace {

using client::ReplyCode;

const char* store_word(const Operation& op) {
  switch (op.kind) {
    case Kind::kAdd:
      return "add";
    case Kind::kReplace:
      return "replace";
    case Kind::kAppend:
      return "append";
    case Kind::kPrepend:
      return "prepend";
    default:
      return op.has(kComparesCas) ? "cas" : "set";
  }
}

void encode_reads(std::span<const Operation> operations, std::string* out) {
  const Operation& first = operations[0];
  const bool cas = first.shows(kShowsCas);
  const bool touches = first.has(kTouches);
  append_line(touches ? (cas ? "gats" : "gat") : (cas ? "gets" : "get"), out, [&](auto& line) {
    if (touches) line.number(first.exptime);
    for (const Operation& op : operations) line.key(key_name(op.key));
  });
}

bool record_hit(const client::TextReply& reply, Operation& op) {
  if (reply.head.has_cas != op.shows(kShowsCas)) return false;
  op.outcome = Outcome::kHit;
  op.shown |= kShowsValue | kShowsFlags;
  op.seen_flags = reply.head.client_flags;
  op.seen_cas = reply.head.cas;
  op.seen = value_of(reply.value);
  return true;
}

// Values come in the order of the keys; missing keys have none.
bool decode_reads(std::span<Operation> operations, std::string_view* replies) {
  client::TextReply reply;
  if (!take_text(replies, &reply)) return false;
  if (reply.code == ReplyCode::kError) {
    return operations.size() == 1 && decode_error_line(reply.line, operations[0]) &&
           operations[0].outcome == Outcome::kNoMemory;
  }
  for (Operation& op : operations) {
    if (reply.code == ReplyCode::kValue && reply.head.key == key_name(op.key)) {
      if (!record_hit(reply, op) || !take_text(replies, &reply)) return false;
    } else {
      op.outcome = Outcome::kMiss;
      op.shown = 0;
    }
  }
  return reply.code == ReplyCode::kEnd;
}

Outcome outcome_of(ReplyCode code) {
  switch (code) {
    case ReplyCode::kStored:
      return Outcome::kStored;
    case ReplyCode::kNotStored:
      return Outcome::kNotStored;
    case ReplyCode::kExists:
      return Outcome::kExists;
    case ReplyCode::kNotFound:
      return Outcome::kNotFound;
    case ReplyCode::kDeleted:
      return Outcome::kDeleted;
    case ReplyCode::kTouched:
      return Outcome::kTouched;
    case ReplyCode::kOk:
      return Outcome::kOk;
    default:
      return Outcome::kUnknown;
  }
}

}  // namespace

void encode_text(std::span<const Operation> operations, std::string_view body, std::string* out) {
  const Operation& op = operations[0];
  const std::string key = key_name(op.key);
  switch (op.kind) {
    case Kind::kGet:
      return encode_reads(operations, out);
    case Kind::kDelete:
      return append_line("delete", out, [&](auto& line) { line.key(key); });
    case Kind::kIncr:
    case Kind::kDecr:
      return append_line(op.kind == Kind::kIncr ? "incr" : "decr", out,
                         [&](auto& line) { line.key(key).number(op.delta); });
    case Kind::kTouch:
      return append_line("touch", out, [&](auto& line) { line.key(key).number(op.exptime); });
    case Kind::kFlush:
      return append_line("flush_all", out, [](auto&) {});
    default:
      break;
  }
  client::StoreFields fields = {op.flags, op.exptime, body.size()};
  if (op.has(kComparesCas)) fields.cas = &op.cas_compare;
  client::append(kLineMax, out,
                 [&](char* at) { return client::write_store(store_word(op), key, fields, at); });
  out->append(body).append(client::kLineEnd);
}

bool decode_text(std::span<Operation> operations, std::string_view* replies) {
  Operation& op = operations[0];
  if (op.kind == Kind::kGet) return decode_reads(operations, replies);
  client::TextReply reply;
  if (!take_text(replies, &reply)) return false;
  if (decode_error_line(reply.line, op)) return true;
  const bool counts = op.kind == Kind::kIncr || op.kind == Kind::kDecr;
  if (counts && client::read_number(reply.line, &op.seen_number)) {
    op.outcome = Outcome::kNumber;
    return true;
  }
  op.outcome = outcome_of(reply.code);
  return op.outcome != Outcome::kUnknown;
}

}  // namespace warpcache::stress::detail
