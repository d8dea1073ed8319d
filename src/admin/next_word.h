// SPDX-License-Identifier: Apache-2.0
//
// Splits administrative lines into words.
#pragma once

#include <algorithm>
#include <string_view>

namespace warpcache::admin {

// Removes the first word from `words` and returns it; empty if there is none.
inline std::string_view next_word(std::string_view& words) {
  const size_t begin = words.find_first_not_of(' ');
  if (begin == std::string_view::npos) return words = {};
  words.remove_prefix(begin);
  const size_t end = std::min(words.find(' '), words.size());
  const std::string_view word = words.substr(0, end);
  words.remove_prefix(end);
  return word;
}

}  // namespace warpcache::admin
