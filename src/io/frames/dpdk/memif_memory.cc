// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/memif_memory.h"

#include <fcntl.h>
#include <rte_malloc.h>
#include <rte_memory.h>

#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "io/frames/dpdk/memif_guard.h"

namespace warpcache::io {
namespace {

constexpr const char* kListName = "bufs";  // which the driver gives them

// Never destroyed, as in memif_guard.cc.
struct Lists {
  std::mutex mutex;
  std::vector<void*> all;
};

Lists& lists() {
  static auto* const made = new Lists;
  return *made;
}

}  // namespace

void free_memif_lists() {
  std::vector<void*> ended;
  {
    const std::lock_guard lock(lists().mutex);
    ended = std::exchange(lists().all, {});
  }
  for (void* const list : ended) rte_free(list);
}

}  // namespace warpcache::io

// What the driver finds.

#define WC_FOUND_BY_DRIVERS extern "C" __attribute__((visibility("default")))

WC_FOUND_BY_DRIVERS int rte_memseg_get_fd(const rte_memseg* segment) {
  using namespace warpcache::io;
  static const auto function = function_in_dpdk(&rte_memseg_get_fd, "rte_memseg_get_fd");
  const int fd = function(segment);
  return fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

WC_FOUND_BY_DRIVERS void* rte_zmalloc(const char* type, size_t bytes, unsigned align) {
  using namespace warpcache::io;
  static const auto function = function_in_dpdk(&rte_zmalloc, "rte_zmalloc");
  void* const made = function(type, bytes, align);
  if (made == nullptr || type == nullptr || std::strcmp(type, kListName) != 0) return made;
  const std::lock_guard lock(lists().mutex);
  lists().all.push_back(made);
  return made;
}
