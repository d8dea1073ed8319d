// SPDX-License-Identifier: Apache-2.0
//
// Numbers in text as memcached takes them, by the C library's own functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace warpcache::model {

// What strtoull() and its like take, followed by the end or by white space. Narrow ones keep the
// low 32 bits.
bool read_u64(const std::string& text, uint64_t& number);
bool read_u32(const std::string& text, uint32_t& number);
bool read_i32(const std::string& text, int32_t& number);
// Digits alone, a '-' in front where signed, in range. A '-' alone is 0.
bool read_plain_i32(const std::string& text, int32_t& number);
bool read_plain_u32(const std::string& text, uint32_t& number);
bool read_plain_u64(const std::string& text, uint64_t& number);

// False: not base64 with its padding, or it is nothing.
bool read_base64(const std::string& text, std::string& bytes);
std::string base64(const std::string& bytes);

// At blanks only, as every line of the protocol.
std::vector<std::string> split_words(const std::string& line);

}  // namespace warpcache::model
