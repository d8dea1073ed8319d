// SPDX-License-Identifier: Apache-2.0
//
// Address space from the system. Pages come when they are touched, as zeros.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpcache::store {

class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // With `huge_pages` it starts at a boundary of them, and they are asked for: look-ups in small
  // pages wait for address translation. False: the system refuses. REQUIRES: nothing is mapped yet;
  // size is not 0.
  bool map(uint64_t size, bool huge_pages);
  // Gives the pages of a range back; it reads as zeros afterwards. There are no huge pages in it
  // until they are asked for again.
  void drop(uint64_t offset, uint64_t size);
  // For the first `size` bytes; does nothing if it was mapped without.
  void ask_for_huge_pages(uint64_t size);

  uint8_t* data() const { return data_; }

 private:
  void* mapped_ = nullptr;
  uint64_t mapped_size_ = 0;
  uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  bool huge_pages_ = false;
};

uint64_t physical_memory_bytes();

}  // namespace warpcache::store
