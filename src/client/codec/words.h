// SPDX-License-Identifier: Apache-2.0
//
// Words, numbers and lines of text, as all readers of replies take them.
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>

namespace warpcache::client {

// Removes the next word and the blank after it from the front of `text`. Empty: there is none.
inline std::string_view take_word(std::string_view* text) {
  const size_t end = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return word;
}

// False: `text` is not a decimal number that fits.
template <typename Number>
bool read_number(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// Removes a number and the blank after it from the front of `text`.
template <typename Number>
bool take_number(std::string_view* text, Number* number) {
  const char* const all_end = text->data() + text->size();
  const auto [end, error] = std::from_chars(text->data(), all_end, *number);
  if (error != std::errc() || (end != all_end && *end != ' ')) return false;
  const size_t taken = static_cast<size_t>(end - text->data());
  text->remove_prefix(std::min(taken + 1, text->size()));
  return true;
}

}  // namespace warpcache::client
