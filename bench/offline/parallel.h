// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace warpcache::offline {

// Calls work(begin, end) in one thread for each processor, with its share of [0, count).
template <typename Work>
void in_parallel(uint64_t count, const Work& work) {
  const uint64_t threads = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t share = (count + threads - 1) / threads;
  std::vector<std::thread> workers;
  for (uint64_t at = 0; at < count; at += share) {
    workers.emplace_back([&work, at, end = std::min(at + share, count)] { work(at, end); });
  }
  for (std::thread& worker : workers) worker.join();
}

}  // namespace warpcache::offline
