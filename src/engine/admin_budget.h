// SPDX-License-Identifier: Apache-2.0
//
// How many administrative commands a thread runs: each takes as long as hundreds of requests.
// Without a limit in time, a thread whose clients send many of them does nothing else, batch after
// batch.
#pragma once

#include <chrono>
#include <cstdint>

namespace warpcache::engine {

// Of one batch at most. Further ones run in the next batch.
inline constexpr uint32_t kBatchAdminMax = 8;
// Of one stream and batch at most, so that a stream with many of them leaves others their share.
inline constexpr uint32_t kEntryAdminMax = 2;
// Of one datagram at most, since it cannot be continued in a later batch.
inline constexpr uint32_t kDatagramAdminMax = 1;

class AdminBudget {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kWindow = std::chrono::milliseconds(1);

  // kBatchAdminMax commands of streams, and as many of datagrams, run within `window`. 0: no limit
  // in time.
  explicit AdminBudget(Clock::duration window = kWindow) : window_(window) {}

  void begin_batch() { in_batch_ = 0; }

  // Whether one more command may run at `now`, of an entry of which `in_entry` have run. A datagram
  // cannot wait for its turn, so commands of streams do not count against those of datagrams.
  bool allows(bool datagram, uint32_t in_entry, Clock::time_point now) {
    if (datagram) return in_entry < kDatagramAdminMax && datagrams_.open(now, window_);
    return in_entry < kEntryAdminMax && in_batch_ < kBatchAdminMax && streams_.open(now, window_);
  }

  void count(bool datagram) {
    if (!datagram) ++in_batch_;
    ++(datagram ? datagrams_ : streams_).count;
  }

 private:
  struct Window {
    Clock::time_point began;
    uint32_t count = 0;

    // A new window begins with the first command after the end of the last one.
    bool open(Clock::time_point now, Clock::duration length) {
      if (now - began >= length) {
        began = now;
        count = 0;
      }
      return count < kBatchAdminMax;
    }
  };

  Clock::duration window_;
  Window streams_;
  Window datagrams_;
  uint32_t in_batch_ = 0;
};

}  // namespace warpcache::engine
