// SPDX-License-Identifier: Apache-2.0
//
// Converts operations to protocol bytes, and reads replies.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "client/codec/text.h"
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

inline constexpr size_t kLineMax = 4096;  // bytes

void encode_text(std::span<const Operation> operations, std::string_view body, std::string* out);
void encode_meta(const Operation& op, std::string_view body, uint32_t opaque, std::string* out);
void encode_binary(const Operation& op, std::string_view body, uint32_t opaque, std::string* out);
bool decode_text(std::span<Operation> operations, std::string_view* replies);
bool decode_meta(Operation& op, uint32_t opaque, std::string_view* replies);
bool decode_binary(Operation& op, uint32_t opaque, std::string_view* replies);

// Appends the line of a request. `write` takes a client::RequestLine.
template <typename Write>
void append_line(std::string_view verb, std::string* out, const Write& write) {
  client::append(kLineMax, out, [&](char* at) {
    client::RequestLine line(at, verb);
    write(line);
    return line.end();
  });
}

// Takes a line or a value, of which nothing may be missing.
bool take_text(std::string_view* replies, client::TextReply* reply);
// An error line, which text and meta have in common.
bool decode_error_line(std::string_view line, Operation& op);

}  // namespace detail

}  // namespace warpcache::stress
