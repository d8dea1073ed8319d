// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/write_back.h"

#include <thread>

#include "base/atomic.h"

namespace warpcache::nic_cache {

// A write is counted when it has its place in the ring, and answered when it is there. So once as
// many are applied as were counted, all that were answered are. One that is counted and not there
// yet is waited for: its run of the program ends within microseconds.
void WriteBack::settle(const Apply& apply) {
  const uint64_t accepted = load_acquire(&accepted_);
  if (applied_.load(std::memory_order_acquire) >= accepted) return;
  const std::lock_guard guard(mutex_);
  for (;;) {
    program_.take_writes([&](const nic_write& write) {
      apply(write);
      applied_.fetch_add(1, std::memory_order_release);
    });
    if (applied_.load(std::memory_order_relaxed) >= accepted) return;
    std::this_thread::yield();
  }
}

}  // namespace warpcache::nic_cache
