// SPDX-License-Identifier: Apache-2.0
//
// In the place of src/gpu/host_polls.h: whoever waits leaves the processor to the blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace warpcache::gpu {

inline constexpr uint32_t kPollsPerLook = 256;
// Not even beside much other work.
inline constexpr uint32_t kJobMsMax = 300'000;

// Sleeps, as a thread that only yields its processor takes half of it from one that computes.
inline void between_polls(uint32_t polls) {
  constexpr uint32_t kPollsPerSleep = 8;
  if (polls % kPollsPerSleep == 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace warpcache::gpu
