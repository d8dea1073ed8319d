// SPDX-License-Identifier: Apache-2.0
#include "model/numbers.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <sstream>

namespace warpcache::model {

namespace {

constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Where a number ends well.
bool is_end(const char* end) {
  return *end == '\0' || std::isspace(static_cast<unsigned char>(*end)) != 0;
}

bool is_plain(const std::string& text, bool is_signed, size_t size_max) {
  if (text.empty() || text.size() > size_max) return false;
  const size_t start = is_signed && text[0] == '-' ? 1 : 0;
  return text.find_first_not_of("0123456789", start) == std::string::npos;
}

}  // namespace

bool read_u64(const std::string& text, uint64_t& number) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (errno == ERANGE || end == text.c_str() || !is_end(end)) return false;
  const std::string used = text.substr(0, static_cast<size_t>(end - text.c_str()));
  if (value > INT64_MAX && used.find('-') != std::string::npos) return false;
  number = value;
  return true;
}

bool read_u32(const std::string& text, uint32_t& number) {
  uint64_t wide = 0;
  if (!read_u64(text, wide)) return false;
  number = static_cast<uint32_t>(wide);
  return true;
}

bool read_i32(const std::string& text, int32_t& number) {
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (errno == ERANGE || end == text.c_str() || !is_end(end)) return false;
  number = static_cast<int32_t>(value);
  return true;
}

bool read_plain_i32(const std::string& text, int32_t& number) {
  if (!is_plain(text, true, 11)) return false;
  const long value = std::strtol(text.c_str(), nullptr, 10);
  if (value < INT32_MIN || value > INT32_MAX) return false;
  number = static_cast<int32_t>(value);
  return true;
}

bool read_plain_u32(const std::string& text, uint32_t& number) {
  if (!is_plain(text, false, 11)) return false;
  const unsigned long value = std::strtoul(text.c_str(), nullptr, 10);
  if (value > UINT32_MAX) return false;
  number = static_cast<uint32_t>(value);
  return true;
}

bool read_plain_u64(const std::string& text, uint64_t& number) {
  if (!is_plain(text, false, 22)) return false;
  errno = 0;
  const unsigned long long value = std::strtoull(text.c_str(), nullptr, 10);
  if (errno == ERANGE) return false;
  number = value;
  return true;
}

// As memcached's decoder: what is no letter does not count, what follows the padding neither.
bool read_base64(const std::string& text, std::string& bytes) {
  const std::string letters = kLetters;
  std::string word;
  for (const char c : text) {
    if (c == '=' || letters.find(c) != std::string::npos) word += c;
  }
  if (word.empty() || word.size() % 4 != 0) return false;
  bytes.clear();
  for (size_t i = 0; i < word.size(); i += 4) {
    uint32_t group = 0;
    size_t padding = 0;
    for (size_t j = i; j < i + 4; ++j) {
      if (word[j] == '=') ++padding;
      group = group << 6 | (word[j] == '=' ? 0 : static_cast<uint32_t>(letters.find(word[j])));
    }
    if (padding > 2) return false;
    for (int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift & 0xff);
    bytes.erase(bytes.size() - padding);
    if (padding != 0) break;
  }
  return true;
}

std::string base64(const std::string& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      const uint32_t byte = i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0;
      group = group << 8 | byte;
    }
    for (int shift : {18, 12, 6, 0}) text += kLetters[group >> shift & 63];
  }
  const size_t padding = (3 - bytes.size() % 3) % 3;
  for (size_t i = 1; i <= padding; ++i) text[text.size() - i] = '=';
  return text;
}

std::vector<std::string> split_words(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  std::string word;
  while (std::getline(stream, word, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

}  // namespace warpcache::model
