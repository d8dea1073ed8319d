// SPDX-License-Identifier: Apache-2.0
#include "stress/command.h"

#include "base/assert.h"

namespace warpcache::stress {

namespace detail {

bool take_text(std::string_view* replies, client::TextReply* reply) {
  return client::take_reply(replies, reply) == client::Taken::kWhole;
}

bool decode_error_line(std::string_view line, Operation& op) {
  if (line.starts_with("SERVER_ERROR out of memory")) {
    op.outcome = Outcome::kNoMemory;
  } else if (line == "CLIENT_ERROR cannot increment or decrement non-numeric value") {
    op.outcome = Outcome::kNonNumeric;
  } else {
    return false;
  }
  return true;
}

}  // namespace detail

std::string key_name(uint32_t key) { return "key:" + std::to_string(key); }

void encode(Form form, std::span<const Operation> operations, std::string_view body,
            uint32_t opaque, std::string* out) {
  WC_ASSERT(operations.size() == 1 || form == Form::kText);
  switch (form) {
    case Form::kText:
      return detail::encode_text(operations, body, out);
    case Form::kMeta:
      return detail::encode_meta(operations[0], body, opaque, out);
    case Form::kBinary:
      return detail::encode_binary(operations[0], body, opaque, out);
  }
}

bool decode(Form form, std::span<Operation> operations, uint32_t opaque,
            std::string_view* replies) {
  switch (form) {
    case Form::kText:
      return detail::decode_text(operations, replies);
    case Form::kMeta:
      return detail::decode_meta(operations[0], opaque, replies);
    case Form::kBinary:
      return detail::decode_binary(operations[0], opaque, replies);
  }
  return false;
}

}  // namespace warpcache::stress
