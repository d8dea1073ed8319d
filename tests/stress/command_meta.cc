// SPDX-License-Identifier: Apache-2.0
//
// The meta commands: mg, ms, md, ma.
#include <fmt/format.h>

#include <iterator>

#include "stress/command.h"

namespace warpcache::stress::detail {

namespace {

bool is_delta(const Operation& op) { return op.kind == Kind::kIncr || op.kind == Kind::kDecr; }

char store_mode(Kind kind) {
  switch (kind) {
    case Kind::kAdd:
      return 'E';
    case Kind::kReplace:
      return 'R';
    case Kind::kAppend:
      return 'A';
    case Kind::kPrepend:
      return 'P';
    default:
      return 'S';
  }
}

// Reads the flags that a reply shows, in any order.
bool decode_flags(std::string_view flags, uint32_t opaque, Operation& op) {
  bool right_opaque = false;
  while (!flags.empty()) {
    const std::string_view word = take_word(&flags);
    if (word.empty()) return false;
    const std::string_view rest = word.substr(1);
    uint64_t number = 0;
    switch (word[0]) {
      case 'O':
        right_opaque = rest == std::to_string(opaque);
        break;
      case 'k':
        if (rest != key_name(op.key)) return false;
        break;
      case 'c':
        if (!parse_number(rest, &op.seen_cas)) return false;
        op.shown |= kShowsCas;
        break;
      case 'f':
        if (!parse_number(rest, &number)) return false;
        op.seen_flags = static_cast<uint32_t>(number);
        op.shown |= kShowsFlags;
        break;
      case 't':
        if (rest != "-1" && !parse_number(rest, &number)) return false;
        op.seen_ttl = rest == "-1" ? -1 : static_cast<int32_t>(number);
        op.shown |= kShowsTtl;
        break;
      case 'W':
        op.signs |= kWon;
        break;
      case 'X':
        op.signs |= kStale;
        break;
      case 'Z':
        op.signs |= kAlreadySent;
        break;
      default:
        return false;
    }
  }
  return right_opaque;
}

bool decode_value(std::string_view line, uint32_t opaque, std::string_view* replies,
                  Operation& op) {
  uint64_t size = 0;
  std::string_view value;
  if (!parse_number(take_word(&line), &size) || !take_block(replies, size, &value)) return false;
  if (is_delta(op)) {
    op.outcome = Outcome::kNumber;
    return parse_number(value, &op.seen_number) && decode_flags(line, opaque, op);
  }
  op.outcome = Outcome::kHit;
  op.seen = value_of(value);
  op.shown |= kShowsValue | kShowsSigns;
  return op.kind == Kind::kGet && decode_flags(line, opaque, op);
}

}  // namespace

void encode_meta(const Operation& op, std::string_view body, uint32_t opaque, std::string* out) {
  const std::string key = key_name(op.key);
  const auto to = std::back_inserter(*out);
  const bool stores = op.kind >= Kind::kSet && op.kind <= Kind::kPrepend;
  if (op.kind == Kind::kGet) {
    fmt::format_to(to, "mg {} v c f k", key);
  } else if (stores) {
    fmt::format_to(to, "ms {} {} c k F{} M{}", key, body.size(), op.flags, store_mode(op.kind));
  } else if (op.kind == Kind::kDelete) {
    fmt::format_to(to, "md {} k", key);
  } else {
    fmt::format_to(to, "ma {} v c k D{} M{}", key, op.delta, op.kind == Kind::kIncr ? 'I' : 'D');
    if (op.has(kVivifies)) fmt::format_to(to, " J{}", op.initial);
  }
  fmt::format_to(to, " O{}", opaque);
  // Before T: R compares the old time left.
  if (op.has(kRecaches)) fmt::format_to(to, " R{}", op.recache_ttl);
  if (stores || op.has(kTouches)) fmt::format_to(to, " T{}", op.exptime);
  if (op.has(kComparesCas)) fmt::format_to(to, " C{}", op.cas_compare);
  if (op.has(kVivifies)) fmt::format_to(to, " N{}", op.vivify_exptime);
  if (op.has(kInvalidates)) *out += " I";
  if (op.has(kEmpties)) *out += " x";
  // After T and N: t shows the new time left.
  if (op.kind == Kind::kGet || is_delta(op)) *out += " t";
  *out += "\r\n";
  if (!stores) return;
  *out += body;
  *out += "\r\n";
}

bool decode_meta(Operation& op, uint32_t opaque, std::string_view* replies) {
  op.shown = 0;
  std::string_view line;
  if (!take_line(replies, &line)) return false;
  if (decode_error_line(line, op)) return true;
  const std::string_view code = take_word(&line);
  if (code == "VA") return decode_value(line, opaque, replies, op);
  if (code == "HD") {
    op.outcome = op.kind == Kind::kDelete ? Outcome::kDeleted : Outcome::kStored;
    return !is_delta(op) && op.kind != Kind::kGet && decode_flags(line, opaque, op);
  }
  if (code == "EN") {
    op.outcome = Outcome::kMiss;
  } else if (code == "NS") {
    op.outcome = Outcome::kNotStored;
  } else if (code == "EX") {
    op.outcome = Outcome::kExists;
  } else if (code == "NF") {
    op.outcome = Outcome::kNotFound;
  } else {
    return false;
  }
  const bool right = decode_flags(line, opaque, op);
  op.shown = 0;  // a failure shows nothing of the item
  return right;
}

}  // namespace warpcache::stress::detail
