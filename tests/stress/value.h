// SPDX-License-Identifier: Apache-2.0
//
// A value as the checker stores it: a hash and a size. Both can be computed for a concatenation
// without the bytes.
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

// `number` in decimal, padded with blanks to `size`; longer if it has more digits.
Value number_value(uint64_t number, uint32_t size);

// Text with `id`, then bytes that follow from it, `size` in all (more if the text is longer). It
// starts with a letter, so it is no number.
std::string make_value(uint64_t id, uint32_t size);

}  // namespace warpcache::stress
