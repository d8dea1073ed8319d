// SPDX-License-Identifier: Apache-2.0
//
// How many administrative commands one thread runs in a time: as many as in a batch. Without it a
// thread to which many clients send them does nothing else, batch after batch.
#pragma once

#include <chrono>
#include <cstdint>

#include "engine/replies.h"

namespace warpcache::engine {

class AdminWindow {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kLength{1};

  // Whether one more may run at `now`. A window begins with the first that comes behind the last
  // one's end.
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
