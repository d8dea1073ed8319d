// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a stream that have arrived and are not consumed yet, in one piece.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/bytes.h"

namespace warpcache::io {

class AmInput {
 public:
  size_t size() const { return end_ - begin_; }
  size_t capacity() const { return capacity_; }
  const uint8_t* data() const { return buffer_.get() + begin_; }

  // Puts bytes in before the one at `offset`. False: the system refuses the memory. REQUIRES:
  // offset <= size().
  [[nodiscard]] bool insert(size_t offset, Bytes bytes) {
    WC_DASSERT(offset <= size());
    if (bytes.empty()) return true;
    if (end_ + bytes.size > capacity_ && !extend(size() + bytes.size)) return false;
    uint8_t* const at = buffer_.get() + begin_ + offset;
    if (offset < size()) std::memmove(at + bytes.size, at, size() - offset);
    std::memcpy(at, bytes.data, bytes.size);
    end_ += bytes.size;
    return true;
  }

  [[nodiscard]] bool append(Bytes bytes) { return insert(size(), bytes); }

  // REQUIRES: bytes <= size().
  void consume(size_t bytes) {
    WC_DASSERT(bytes <= size());
    begin_ += bytes;
    if (begin_ != end_) return;
    begin_ = end_ = 0;
    if (capacity_ > kKept) clear();
  }

  void clear() {
    buffer_.reset();
    begin_ = end_ = capacity_ = 0;
  }

 private:
  static constexpr size_t kSmallest = 1024;
  static constexpr size_t kKept = 4096;  // an idle stream keeps no more

  // Moves the bytes to the front of a buffer that is large enough for `bytes`.
  bool extend(size_t bytes) {
    const size_t used = size();
    if (bytes <= capacity_ / 2) {
      std::memmove(buffer_.get(), data(), used);
    } else {
      const size_t capacity = std::max(kSmallest, 2 * bytes);
      std::unique_ptr<uint8_t[]> larger(new (std::nothrow) uint8_t[capacity]);
      if (larger == nullptr) return false;
      if (used > 0) std::memcpy(larger.get(), data(), used);
      buffer_ = std::move(larger);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = used;
    return true;
  }

  std::unique_ptr<uint8_t[]> buffer_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace warpcache::io
