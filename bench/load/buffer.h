// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_BUFFER_H_
#define WARPCACHE_BENCH_LOAD_BUFFER_H_

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace warpcache::load {

// A byte buffer that grows as needed and does not clear its memory.
class Buffer {
 public:
  // Ensures free space for `bytes` after the contents and returns its start.
  char* reserve(size_t bytes) {
    if (capacity_ - size_ < bytes) grow(size_ + bytes);
    return data_.get() + size_;
  }
  void set_end(const char* end) { size_ = static_cast<size_t>(end - data_.get()); }
  void extend(size_t bytes) { size_ += bytes; }
  void append(std::string_view bytes) {
    std::memcpy(reserve(bytes.size()), bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void assign(std::string_view bytes) {  // `bytes` may be part of this buffer
    if (capacity_ < bytes.size()) {
      clear();
      append(bytes);
      return;
    }
    if (!bytes.empty()) std::memmove(data_.get(), bytes.data(), bytes.size());
    size_ = bytes.size();
  }
  void clear() { size_ = 0; }
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  char* data() { return data_.get(); }
  std::string_view view() const { return {data_.get(), size_}; }

 private:
  void grow(size_t needed) {
    const size_t capacity = needed + needed / 2;
    std::unique_ptr<char[]> bigger(new char[capacity]);
    if (size_ > 0) std::memcpy(bigger.get(), data_.get(), size_);
    data_ = std::move(bigger);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_BUFFER_H_
