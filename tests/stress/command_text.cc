// SPDX-License-Identifier: Apache-2.0
//
// The classic text commands.
#include <fmt/format.h>

#include <iterator>

#include "base/assert.h"
#include "stress/command.h"

namespace warpcache::stress::detail {

namespace {

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
  *out += first.has(kTouches) ? (cas ? "gats" : "gat") : (cas ? "gets" : "get");
  if (first.has(kTouches)) *out += " " + std::to_string(first.exptime);
  for (const Operation& op : operations) *out += " " + key_name(op.key);
  *out += "\r\n";
}

// VALUE <key> <flags> <bytes> [<cas>], the value, CRLF.
bool decode_hit(Operation& op, std::string_view* replies) {
  std::string_view line;
  if (!take_line(replies, &line)) return false;
  take_word(&line);
  if (take_word(&line) != key_name(op.key)) return false;
  uint64_t flags = 0;
  uint64_t size = 0;
  if (!parse_number(take_word(&line), &flags) || !parse_number(take_word(&line), &size))
    return false;
  if (op.shows(kShowsCas) && !parse_number(take_word(&line), &op.seen_cas)) return false;
  std::string_view value;
  if (!line.empty() || !take_block(replies, size, &value)) return false;
  op.outcome = Outcome::kHit;
  op.shown |= kShowsValue | kShowsFlags;
  op.seen_flags = static_cast<uint32_t>(flags);
  op.seen = value_of(value);
  return true;
}

bool decode_reads(std::span<Operation> operations, std::string_view* replies) {
  std::string_view line;
  if (replies->starts_with("SERVER_ERROR")) {
    return operations.size() == 1 && take_line(replies, &line) &&
           decode_error_line(line, operations[0]);
  }
  for (Operation& op : operations) {
    if (replies->starts_with("VALUE " + key_name(op.key) + " ")) {
      if (!decode_hit(op, replies)) return false;
    } else {
      op.outcome = Outcome::kMiss;
      op.shown = 0;
    }
  }
  return take_line(replies, &line) && line == "END";
}

Outcome outcome_of(std::string_view line) {
  constexpr std::pair<std::string_view, Outcome> kOutcomes[] = {
      {"STORED", Outcome::kStored},   {"NOT_STORED", Outcome::kNotStored},
      {"EXISTS", Outcome::kExists},   {"NOT_FOUND", Outcome::kNotFound},
      {"DELETED", Outcome::kDeleted}, {"TOUCHED", Outcome::kTouched},
      {"OK", Outcome::kOk},
  };
  for (const auto& [text, outcome] : kOutcomes) {
    if (line == text) return outcome;
  }
  return Outcome::kUnknown;
}

}  // namespace

void encode_text(std::span<const Operation> operations, std::string_view body, std::string* out) {
  const Operation& op = operations[0];
  const std::string key = key_name(op.key);
  const auto to = std::back_inserter(*out);
  switch (op.kind) {
    case Kind::kGet:
      return encode_reads(operations, out);
    case Kind::kDelete:
      fmt::format_to(to, "delete {}\r\n", key);
      return;
    case Kind::kIncr:
    case Kind::kDecr:
      fmt::format_to(to, "{} {} {}\r\n", op.kind == Kind::kIncr ? "incr" : "decr", key, op.delta);
      return;
    case Kind::kTouch:
      fmt::format_to(to, "touch {} {}\r\n", key, op.exptime);
      return;
    case Kind::kFlush:
      *out += "flush_all\r\n";
      return;
    default:
      break;
  }
  fmt::format_to(to, "{} {} {} {} {}", store_word(op), key, op.flags, op.exptime, body.size());
  if (op.has(kComparesCas)) fmt::format_to(to, " {}", op.cas_compare);
  *out += "\r\n";
  *out += body;
  *out += "\r\n";
}

bool decode_text(std::span<Operation> operations, std::string_view* replies) {
  Operation& op = operations[0];
  if (op.kind == Kind::kGet) return decode_reads(operations, replies);
  std::string_view line;
  if (!take_line(replies, &line)) return false;
  if (decode_error_line(line, op)) return true;
  const bool counts = op.kind == Kind::kIncr || op.kind == Kind::kDecr;
  if (counts && parse_number(line, &op.seen_number)) {
    op.outcome = Outcome::kNumber;
    return true;
  }
  op.outcome = outcome_of(line);
  return op.outcome != Outcome::kUnknown;
}

}  // namespace warpcache::stress::detail
