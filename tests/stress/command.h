// SPDX-License-Identifier: Apache-2.0
//
// Converts operations to protocol bytes, and reads replies.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "stress/operation.h"

namespace warpcache::stress {

enum class Form : uint8_t { kText, kMeta, kBinary };

std::string key_name(uint32_t key);

// Appends the command for `operations` to `out`: one operation, or several reads of the text form
// that differ only in their keys. `body` is the value of a store. `opaque` comes back in forms that
// have one.
void encode(Form form, std::span<const Operation> operations, std::string_view body,
            uint32_t opaque, std::string* out);

// Removes the command's reply from the front of `replies` and records what it says. False: it is no
// reply to this command.
bool decode(Form form, std::span<Operation> operations, uint32_t opaque, std::string_view* replies);

namespace detail {

void encode_text(std::span<const Operation> operations, std::string_view body, std::string* out);
void encode_meta(const Operation& op, std::string_view body, uint32_t opaque, std::string* out);
void encode_binary(const Operation& op, std::string_view body, uint32_t opaque, std::string* out);
bool decode_text(std::span<Operation> operations, std::string_view* replies);
bool decode_meta(Operation& op, uint32_t opaque, std::string_view* replies);
bool decode_binary(Operation& op, uint32_t opaque, std::string_view* replies);

// Removes a line from the front, without its line end. False: there is no whole line.
bool take_line(std::string_view* replies, std::string_view* line);
// Removes `size` bytes and CRLF from the front.
bool take_block(std::string_view* replies, size_t size, std::string_view* block);
// An error line, which text and meta have in common.
bool decode_error_line(std::string_view line, Operation& op);
bool parse_number(std::string_view text, uint64_t* number);
// Removes the next word of a line.
std::string_view take_word(std::string_view* line);

}  // namespace detail

}  // namespace warpcache::stress
