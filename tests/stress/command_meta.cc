// SPDX-License-Identifier: Apache-2.0
//
// The meta commands: mg, ms, md, ma.
#include "client/codec/words.h"
#include "stress/command.h"

namespace warpcache::stress::detail {

namespace {

using client::ReplyCode;

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
    const std::string_view word = client::take_word(&flags);
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
        if (!client::read_number(rest, &op.seen_cas)) return false;
        op.shown |= kShowsCas;
        break;
      case 'f':
        if (!client::read_number(rest, &number)) return false;
        op.seen_flags = static_cast<uint32_t>(number);
        op.shown |= kShowsFlags;
        break;
      case 't':
        if (rest != "-1" && !client::read_number(rest, &number)) return false;
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

bool decode_value(const client::TextReply& reply, uint32_t opaque, Operation& op) {
  if (is_delta(op)) {
    op.outcome = Outcome::kNumber;
    return client::read_number(reply.value, &op.seen_number) &&
           decode_flags(reply.meta_flags(), opaque, op);
  }
  op.outcome = Outcome::kHit;
  op.seen = value_of(reply.value);
  op.shown |= kShowsValue | kShowsSigns;
  return op.kind == Kind::kGet && decode_flags(reply.meta_flags(), opaque, op);
}

// Asks to be shown what a reply can show of the item.
void ask_to_show(const Operation& op, client::RequestLine& line) {
  if (op.kind == Kind::kGet) {
    line.flag('v').flag('c').flag('f').flag('k');
  } else if (is_delta(op)) {
    line.flag('v').flag('c').flag('k').flag('D', op.delta);
    line.flag('M', op.kind == Kind::kIncr ? 'I' : 'D');
    if (op.has(kVivifies)) line.flag('J', op.initial);
  } else if (op.kind == Kind::kDelete) {
    line.flag('k');
  } else {
    line.flag('c').flag('k').flag('F', op.flags).flag('M', store_mode(op.kind));
  }
}

}  // namespace

void encode_meta(const Operation& op, std::string_view body, uint32_t opaque, std::string* out) {
  const bool stores = op.kind >= Kind::kSet && op.kind <= Kind::kPrepend;
  const char* const verb = op.kind == Kind::kGet      ? "mg"
                           : stores                   ? "ms"
                           : op.kind == Kind::kDelete ? "md"
                                                      : "ma";
  append_line(verb, out, [&](client::RequestLine& line) {
    line.key(key_name(op.key));
    if (stores) line.number(body.size());
    ask_to_show(op, line);
    line.flag('O', opaque);
    // Before T: R compares the old time left.
    if (op.has(kRecaches)) line.flag('R', op.recache_ttl);
    if (stores || op.has(kTouches)) line.flag('T', op.exptime);
    if (op.has(kComparesCas)) line.flag('C', op.cas_compare);
    if (op.has(kVivifies)) line.flag('N', op.vivify_exptime);
    if (op.has(kInvalidates)) line.flag('I');
    if (op.has(kEmpties)) line.flag('x');
    // After T and N: t shows the new time left.
    if (op.kind == Kind::kGet || is_delta(op)) line.flag('t');
  });
  if (stores) out->append(body).append(client::kLineEnd);
}

bool decode_meta(Operation& op, uint32_t opaque, std::string_view* replies) {
  op.shown = 0;
  client::TextReply reply;
  if (!take_text(replies, &reply)) return false;
  if (decode_error_line(reply.line, op)) return true;
  switch (reply.code) {
    case ReplyCode::kMetaValue:
      return decode_value(reply, opaque, op);
    case ReplyCode::kMetaDone:
      op.outcome = op.kind == Kind::kDelete ? Outcome::kDeleted : Outcome::kStored;
      return !is_delta(op) && op.kind != Kind::kGet && decode_flags(reply.meta_flags(), opaque, op);
    case ReplyCode::kMetaMiss:
      op.outcome = Outcome::kMiss;
      break;
    case ReplyCode::kMetaNotStored:
      op.outcome = Outcome::kNotStored;
      break;
    case ReplyCode::kMetaExists:
      op.outcome = Outcome::kExists;
      break;
    case ReplyCode::kMetaNotFound:
      op.outcome = Outcome::kNotFound;
      break;
    default:
      return false;
  }
  const bool right = decode_flags(reply.meta_flags(), opaque, op);
  op.shown = 0;  // a failure shows nothing of the item
  return right;
}

}  // namespace warpcache::stress::detail
