// SPDX-License-Identifier: Apache-2.0
//
// Limits the administrative commands that a thread runs in a millisecond: as many as in a batch.
// Without it, a thread whose clients send many of them does nothing else, batch after batch.
#pragma once

#include <chrono>
#include <cstdint>

#include "engine/replies.h"

namespace warpcache::engine {

class AdminWindow {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kLength{1};

  // Whether one more may run at `now`. A new window begins with the first command after the end of
  // the last window.
  bool open(Clock::time_point now) {
    if (now - began_ >= kLength) {
      began_ = now;
      count_ = 0;
    }
    return count_ < kBatchAdminMax;
  }
  void count() { ++count_; }

 private:
  Clock::time_point began_;
  uint32_t count_ = 0;
};

}  // namespace warpcache::engine
