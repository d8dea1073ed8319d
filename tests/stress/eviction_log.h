// SPDX-License-Identifier: Apache-2.0
//
// Records the store's evictions, so that a miss counts only if one explains it. Also makes
// allocations fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "store/observer.h"
#include "stress/operation.h"

namespace warpcache::stress {

int64_t now_ns();  // monotonic

class StoreObserver : public store::Observer, public store::Faults {
 public:
  // `fail_every`: one allocation in this number fails; 0: none.
  explicit StoreObserver(uint32_t fail_every) : fail_every_(fail_every) {}

  bool fails_allocation() override;
  void evicted(const store::Item& item, uint32_t now) override;

  // The evictions of checked keys since the last call, in order; `responded` is not set.
  std::vector<Operation> take_evictions();
  uint64_t evictions() const { return count_.load(std::memory_order_relaxed); }

 private:
  uint32_t fail_every_;
  std::atomic<uint64_t> allocations_{0};
  std::atomic<uint64_t> count_{0};  // of checked keys
  std::mutex mutex_;
  std::vector<Operation> evictions_;
};

}  // namespace warpcache::stress
