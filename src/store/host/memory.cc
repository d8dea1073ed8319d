// SPDX-License-Identifier: Apache-2.0
#include "store/host/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"

namespace warpcache::store {

namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;  // bytes

}  // namespace

Mapping::~Mapping() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_size_);
}

bool Mapping::map(uint64_t size, bool huge_pages) {
  WC_ASSERT(data_ == nullptr && size != 0);
  // With space to start at a multiple of a huge page: a huge page across the end of the store's
  // limit would be memory beyond it.
  mapped_size_ = size + (huge_pages ? kHugePage : 0);
  mapped_ = mmap(nullptr, mapped_size_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped_ == MAP_FAILED) {
    mapped_ = nullptr;
    return false;
  }
  const auto address = reinterpret_cast<uintptr_t>(mapped_);
  const uintptr_t skip = huge_pages ? -address % kHugePage : 0;
  data_ = static_cast<uint8_t*>(mapped_) + skip;
  size_ = size;
  huge_pages_ = huge_pages;
  ask_for_huge_pages(size);
  return true;
}

bool Mapping::map_file(int fd, uint64_t size, bool huge_pages) {
  if (!map(size, huge_pages)) return false;
  const void* const mapped =
      mmap(data_, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
  if (mapped == MAP_FAILED) return false;
  of_file_ = true;
  ask_for_huge_pages(size);
  return true;
}

// A request: where the system has no huge pages, small ones are used.
void Mapping::ask_for_huge_pages(uint64_t size) {
  WC_ASSERT(size <= size_);
  if (huge_pages_) static_cast<void>(madvise(data_, size, MADV_HUGEPAGE));
}

// Where huge pages are wanted, the system would soon replace the small pages around the hole by a
// huge one, and fill the hole again.
void Mapping::drop(uint64_t offset, uint64_t size) {
  WC_ASSERT(offset <= size_ && size <= size_ - offset);
  if (huge_pages_) static_cast<void>(madvise(data_ + offset, size, MADV_NOHUGEPAGE));
  static_cast<void>(madvise(data_ + offset, size, of_file_ ? MADV_REMOVE : MADV_DONTNEED));
}

uint64_t physical_memory_bytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
}

}  // namespace warpcache::store
