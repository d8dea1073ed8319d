// SPDX-License-Identifier: Apache-2.0
//
// Operations as bytes on the wire, and what replies say of them.
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
// that differ in their keys alone. `body` is the value of a store. `opaque` comes back where the
// form has such a thing.
void encode(Form form, std::span<const Operation> operations, std::string_view body,
            uint32_t opaque, std::string* out);

// Takes the command's reply off the front of `replies` and notes what it says. False: it is not a
// reply to this command.
bool decode(Form form, std::span<Operation> operations, uint32_t opaque, std::string_view* replies);

namespace detail {

void encode_text(std::span<const Operation> operations, std::string_view body, std::string* out);
void encode_meta(const Operation& op, std::string_view body, uint32_t opaque, std::string* out);
void encode_binary(const Operation& op, std::string_view body, uint32_t opaque, std::string* out);
bool decode_text(std::span<Operation> operations, std::string_view* replies);
bool decode_meta(Operation& op, uint32_t opaque, std::string_view* replies);
bool decode_binary(Operation& op, uint32_t opaque, std::string_view* replies);

// Takes a line off the front, without its line end. False: there is no whole one.
bool take_line(std::string_view* replies, std::string_view* line);
// Takes `size` bytes and CRLF off the front.
bool take_block(std::string_view* replies, size_t size, std::string_view* block);
// A line that text and meta have in common.
bool decode_error_line(std::string_view line, Operation& op);
bool parse_number(std::string_view text, uint64_t* number);
// The next word of a line.
std::string_view take_word(std::string_view* line);

}  // namespace detail

}  // namespace warpcache::stress
