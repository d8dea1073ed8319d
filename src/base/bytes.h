// SPDX-License-Identifier: Apache-2.0
//
// Views of byte ranges. Neither owns what it points to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "base/hd.h"

namespace warpcache {

struct Bytes {
  const uint8_t* data = nullptr;
  size_t size = 0;

  WC_HD uint8_t operator[](size_t i) const {
    WC_DASSERT(i < size);
    return data[i];
  }
  WC_HD bool empty() const { return size == 0; }
  // REQUIRES: offset + count <= size.
  WC_HD Bytes sub(size_t offset, size_t count) const {
    WC_DASSERT(offset <= size && count <= size - offset);
    return {data + offset, count};
  }
  WC_HD Bytes from(size_t offset) const { return sub(offset, size - offset); }
};

// Bytes whose address is a multiple of 4 plus kPhase; the memory up to the next multiple of 4 after
// their end can be read. So they can be compared by words.
template <uint32_t kPhase>
struct WordBytes : Bytes {
  static_assert(kPhase < 4);
};

struct MutableBytes {
  uint8_t* data = nullptr;
  size_t size = 0;

  WC_HD bool empty() const { return size == 0; }
  WC_HD operator Bytes() const { return {data, size}; }  // NOLINT(google-explicit-constructor)
};

inline Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace warpcache
