// SPDX-License-Identifier: Apache-2.0
//
// Refuses chosen allocations: a program that links this has an operator new of its own.
#pragma once

#include <atomic>
#include <cstdint>

namespace warpcache::server {

// Allocations of all threads but those that are exempt are counted from 1 on; `first` to `last` are
// refused.
struct Refusal {
  std::atomic<int64_t> asked{0};
  std::atomic<int64_t> first{0};
  std::atomic<int64_t> last{0};
};

Refusal& refusal();
void exempt_this_thread();

}  // namespace warpcache::server
