// SPDX-License-Identifier: Apache-2.0
//
// How the thread of a port waits for frames of a queue in memory: it polls. A thread that finds
// nothing for a while sleeps in between, since the CPU may be another's.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace warpcache::io {

inline uint64_t polling_now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

// Calls `receive_now` until it returns that frames have come, for at most timeout_ms (0: once), and
// `now_and_then` when none have. Returns false if the port is stopped.
template <typename ReceiveNow, typename NowAndThen>
bool poll_frames(const std::atomic<bool>& stopped, int timeout_ms, ReceiveNow receive_now,
                 NowAndThen now_and_then) {
  constexpr uint64_t kSpinUs = 200;
  constexpr uint64_t kLookUs = 10'000;
  constexpr useconds_t kSleepUs = 50;
  if (receive_now() || timeout_ms == 0) return !stopped.load(std::memory_order_relaxed);
  now_and_then();
  const uint64_t begin = polling_now_us();
  const uint64_t end = begin + static_cast<uint64_t>(timeout_ms) * 1000;
  uint64_t now = begin;
  uint64_t next_look = begin + kLookUs;
  while (!stopped.load(std::memory_order_relaxed) && now < end) {
    if (receive_now()) break;
    now = polling_now_us();
    if (now > begin + kSpinUs) (void)usleep(kSleepUs);
    if (now < next_look) continue;
    next_look = now + kLookUs;
    now_and_then();
  }
  return !stopped.load(std::memory_order_relaxed);
}

}  // namespace warpcache::io
