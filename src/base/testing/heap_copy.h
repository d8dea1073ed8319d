// SPDX-License-Identifier: Apache-2.0
//
// Bytes for tests: exact copies, and as text.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "base/bytes.h"

namespace warpcache::base::testing {

inline std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

// A copy in a heap block of exactly its size, so that sanitizers notice a read beyond its end.
class HeapCopy {
 public:
  explicit HeapCopy(const std::string& text)
      : size_(text.size()), data_(std::make_unique<uint8_t[]>(text.size())) {
    if (size_ != 0) std::memcpy(data_.get(), text.data(), size_);
  }
  Bytes bytes() const { return {data_.get(), size_}; }
  uint8_t* data() { return data_.get(); }

 private:
  size_t size_;
  std::unique_ptr<uint8_t[]> data_;
};

}  // namespace warpcache::base::testing
