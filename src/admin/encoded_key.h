// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warpcache::admin {

// Appends a key in which all bytes but letters, digits and -_.~ are percent-encoded, as memcached's
// dumps and watchers show it.
inline void append_encoded_key(std::string_view key, std::string& out) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : key) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<uint8_t>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
}

}  // namespace warpcache::admin
