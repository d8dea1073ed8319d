// SPDX-License-Identifier: Apache-2.0
//
// Address space from the system. A page gets memory when it is first touched, and reads as zeros.
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

  // Maps the memory. With `huge_pages` it starts at a multiple of their size and asks for them:
  // with small pages look-ups wait for address translation. False: the system refuses. REQUIRES:
  // nothing is mapped yet; size is not 0.
  bool map(uint64_t size, bool huge_pages);
  // The same with the first `size` bytes of a file, which all processes that map it share. The file
  // stays open as long as the mapping.
  bool map_file(int fd, uint64_t size, bool huge_pages);
  // Gives the pages of a range back; it reads as zeros afterwards, and in small pages until huge
  // ones are asked for again.
  void drop(uint64_t offset, uint64_t size);
  // Asks for huge pages in the first `size` bytes. Does nothing if the memory was mapped without.
  void ask_for_huge_pages(uint64_t size);

  uint8_t* data() const { return data_; }

 private:
  void* mapped_ = nullptr;
  uint64_t mapped_size_ = 0;
  uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  bool huge_pages_ = false;
  bool of_file_ = false;
};

uint64_t physical_memory_bytes();

}  // namespace warpcache::store
