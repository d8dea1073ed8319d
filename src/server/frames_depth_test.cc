// SPDX-License-Identifier: Apache-2.0
#include "server/frames_depth.h"

#include <gtest/gtest.h>

#include "io/frames/dpdk/dpdk_ports.h"

namespace warpcache::server {
namespace {

constexpr uint32_t kBuffers = io::kDpdkQueueBuffers;

// A thread has two queues, as bench/frames sets them up; a GPU has 132 multiprocessors.
FramesDepthFacts facts(uint32_t threads) { return {threads, 4, 132, 2 * kBuffers, 1024}; }

TEST(FramesDepth, FewThreadsHaveTheMost) {
  EXPECT_EQ(default_frames_depth(facts(1)), 8u);
  EXPECT_EQ(default_frames_depth(facts(5)), 8u);
}

TEST(FramesDepth, KernelsOfAllThreadsShareTheGpu) {
  EXPECT_EQ(default_frames_depth(facts(7)), 7u);
  EXPECT_EQ(default_frames_depth(facts(10)), 5u);
  for (uint32_t threads = 1; threads <= 12; ++threads) {
    const FramesDepthFacts all = facts(threads);
    const uint32_t depth = default_frames_depth(all);
    EXPECT_LE(2 * (threads * (depth + 1) + all.other_kernels), all.multiprocessors) << threads;
  }
  EXPECT_EQ(default_frames_depth(facts(64)), kFramesDepthMin);
  FramesDepthFacts many_sockets = facts(1);
  many_sockets.other_kernels = 200;
  EXPECT_EQ(default_frames_depth(many_sockets), kFramesDepthMin);
  FramesDepthFacts small = facts(1);
  small.multiprocessors = 0;
  EXPECT_EQ(default_frames_depth(small), kFramesDepthMin);
}

TEST(FramesDepth, BuffersHoldAllBursts) {
  FramesDepthFacts one_queue = facts(1);
  one_queue.buffers = kBuffers;
  EXPECT_EQ(default_frames_depth(one_queue), 6u);
  one_queue.burst = 64;
  EXPECT_EQ(default_frames_depth(one_queue), 8u);
  one_queue.burst = 8192;
  EXPECT_EQ(default_frames_depth(one_queue), kFramesDepthMin);
}

TEST(FramesDepth, PortsThatCopyHaveTheLeast) {
  FramesDepthFacts copies = facts(1);
  copies.buffers = 0;
  EXPECT_EQ(default_frames_depth(copies), kFramesDepthMin);
}

}  // namespace
}  // namespace warpcache::server
