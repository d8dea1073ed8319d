// SPDX-License-Identifier: Apache-2.0
#include "store/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"

namespace warpcache::store {

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, size_);
}

bool Mapping::map(uint64_t size, bool huge_pages) {
  WC_ASSERT(data_ == nullptr && size != 0);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return false;
  data_ = static_cast<uint8_t*>(data);
  size_ = size;
  // A wish: where the system has no huge pages to give, small ones do.
  if (huge_pages) static_cast<void>(madvise(data_, size_, MADV_HUGEPAGE));
  return true;
}

void Mapping::drop(uint64_t offset, uint64_t size) {
  WC_ASSERT(offset <= size_ && size <= size_ - offset);
  static_cast<void>(madvise(data_ + offset, size, MADV_DONTNEED));
}

uint64_t physical_memory_bytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
}

}  // namespace warpcache::store
