// SPDX-License-Identifier: Apache-2.0
#include "stress/command.h"

#include <charconv>

#include "base/assert.h"

namespace warpcache::stress {

namespace detail {

bool take_line(std::string_view* replies, std::string_view* line) {
  const size_t end = replies->find("\r\n");
  if (end == std::string_view::npos) return false;
  *line = replies->substr(0, end);
  replies->remove_prefix(end + 2);
  return true;
}

bool take_block(std::string_view* replies, size_t size, std::string_view* block) {
  if (replies->size() < size + 2 || replies->substr(size, 2) != "\r\n") return false;
  *block = replies->substr(0, size);
  replies->remove_prefix(size + 2);
  return true;
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

bool parse_number(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view take_word(std::string_view* line) {
  const size_t end = std::min(line->find(' '), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(std::min(end + 1, line->size()));
  return word;
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
