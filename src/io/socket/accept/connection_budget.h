// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "io/wake_event.h"

namespace warpcache::io {

// Shared by the workers' transports: the number of connections (the acceptor adds, workers
// subtract) and how often the store had no space for a body. Any thread.
class ConnectionBudget {
 public:
  ConnectionBudget(uint32_t max, const WakeEvent& freed) : max_(max), freed_(freed) {}

  uint32_t max() const { return max_; }
  uint32_t current() const { return current_.load(std::memory_order_relaxed); }
  bool full() const { return current_.load() >= max_; }

  // An id that is unique in the process; never 0.
  uint64_t next_id() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  // False: full. Ports of active messages take from it too, on other threads.
  bool try_take() {
    uint32_t current = current_.load();
    while (current < max_) {
      if (current_.compare_exchange_weak(current, current + 1)) return true;
    }
    return false;
  }
  void give_back() {
    current_.fetch_sub(1);
    if (waiting_.load()) freed_.raise();
  }
  void count_refused_body() { bodies_refused_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t bodies_refused() const { return bodies_refused_.load(std::memory_order_relaxed); }

  // Whether the acceptor waits for the next give_back(), after which it checks full() again.
  void set_waiting(bool waiting) { waiting_.store(waiting); }

 private:
  uint32_t max_;
  const WakeEvent& freed_;
  std::atomic<uint32_t> current_{0};
  std::atomic<bool> waiting_{false};
  std::atomic<uint64_t> next_id_{1};
  std::atomic<uint64_t> bodies_refused_{0};
};

}  // namespace warpcache::io
