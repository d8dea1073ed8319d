// SPDX-License-Identifier: Apache-2.0
//
// A value as the checker sees it: a hash and a size that say which bytes it has, and that can be
// computed for a concatenation without them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warpcache::stress {

struct Value {
  uint64_t hash = 0;  // of the bytes; 0 for none
  uint32_t size = 0;  // bytes
  bool is_number = false;
  uint64_t number = 0;  // with is_number

  bool same_bytes(const Value& other) const { return hash == other.hash && size == other.size; }
};

Value value_of(std::string_view bytes);
Value concatenate(const Value& front, const Value& back);

// `number` in decimal, blanks behind it up to `size`; longer where its digits are.
Value number_value(uint64_t number, uint32_t size);

// Text that names `id`, then bytes that follow from it, `size` in all (more where the name is
// longer). Starts with a letter, so it is no number.
std::string make_value(uint64_t id, uint32_t size);

}  // namespace warpcache::stress
