// SPDX-License-Identifier: Apache-2.0
//
// Test support: makes chosen allocations fail. A program that links this gets another operator new.
#pragma once

#include <atomic>
#include <cstdint>

namespace warpcache::server {

// The allocations of all threads that are not exempt are counted from 1; numbers `first` to `last`
// fail.
struct Refusal {
  std::atomic<int64_t> asked{0};
  std::atomic<int64_t> first{0};
  std::atomic<int64_t> last{0};
};

Refusal& refusal();
void exempt_this_thread();

}  // namespace warpcache::server
