// SPDX-License-Identifier: Apache-2.0
//
// How many bursts of a frame thread a persistent kernel's GPU has at a time where --frames-depth
// does not say. With more of them a request waits less for those before it; yet each needs a
// persistent kernel that is resident beside all others, and buffers for its frames.
#pragma once

#include <algorithm>
#include <cstdint>

#include "options/options.h"

namespace warpcache::server {

struct FramesDepthFacts {
  uint32_t threads = 1;        // of frames
  uint32_t other_kernels = 0;  // persistent ones of the sockets' threads
  uint32_t multiprocessors = 0;
  uint32_t buffers = 0;   // of a thread's port; 0: it copies its frames
  uint32_t burst = 1024;  // frames of a burst at most: the GPU's default
};

// Also the depth by launches, where more of them are smaller launches.
inline constexpr uint32_t kFramesDepthMin = 4;

// Between kFramesDepthMin and kFramesDepthMax. REQUIRES: there is a thread; burst is not 0.
constexpr uint32_t default_frames_depth(const FramesDepthFacts& facts) {
  // 46 kernels with 2 each (5 threads, an H100) had shorter round trips than 26 with 5. A thread
  // has one more kernel, for what comes as messages.
  constexpr uint32_t kMultiprocessorsPerKernel = 2;
  const uint32_t kernels = facts.multiprocessors / kMultiprocessorsPerKernel;
  const uint32_t others = std::min(kernels, facts.other_kernels + facts.threads);
  const uint32_t by_gpu = (kernels - others) / facts.threads;
  // The other quarter is for the device's rings.
  const uint32_t by_buffers = (facts.buffers - facts.buffers / 4) / facts.burst;
  return std::clamp(std::min(by_gpu, by_buffers), kFramesDepthMin, kFramesDepthMax);
}

}  // namespace warpcache::server
