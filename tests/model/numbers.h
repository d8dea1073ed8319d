// SPDX-License-Identifier: Apache-2.0
//
// Reads numbers in text as memcached does, with functions of the C library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace warpcache::model {

// Reads what strtoull() and similar functions accept, followed by the end or white space. 32-bit
// numbers are the low 32 bits.
bool read_u64(const std::string& text, uint64_t& number);
bool read_u32(const std::string& text, uint32_t& number);
bool read_i32(const std::string& text, int32_t& number);
// Reads only digits, after a '-' if the type is signed, in range. A '-' alone is 0.
bool read_plain_i32(const std::string& text, int32_t& number);
bool read_plain_u32(const std::string& text, uint32_t& number);
bool read_plain_u64(const std::string& text, uint64_t& number);

// False: not base64 with padding, or empty.
bool read_base64(const std::string& text, std::string& bytes);
std::string base64(const std::string& bytes);

// Splits at blanks only, as memcached splits lines.
std::vector<std::string> split_words(const std::string& line);

}  // namespace warpcache::model
