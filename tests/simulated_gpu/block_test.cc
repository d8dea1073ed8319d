// SPDX-License-Identifier: Apache-2.0
//
// The threads of a simulated block: what they do together, and that misuse is reported.
#include "simulated_gpu/block.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <numeric>
#include <vector>

namespace simt {
namespace {

constexpr uint32_t kThreads = 96;

void run_block(const std::function<void()>& body, uint32_t threads = kThreads) {
  Place shape;
  shape.block_size = threads;
  shape.grid_size = 3;
  BlockRunner().run(shape, 2, body);
}

uint32_t me() { return place().thread; }

TEST(SimtBlock, EveryThreadKnowsItsPlace) {
  std::vector<int> seen(kThreads, 0);
  run_block([&] {
    ++seen[me()];
    EXPECT_EQ(place().block, 2u);
    EXPECT_EQ(place().block_size, kThreads);
    EXPECT_EQ(place().grid_size, 3u);
  });
  EXPECT_EQ(seen, std::vector<int>(kThreads, 1));
}

TEST(SimtBlock, LanesGetWhatTheirWarpGives) {
  run_block([] {
    for (uint32_t round = 0; round < 50; ++round) {
      if (me() % 7 == round % 7) pass();
      const uint64_t* const words = exchange_in_warp(~0u, me() + round, Together::kShuffle);
      const uint32_t first = me() / kWarpSize * kWarpSize;
      for (uint32_t i = 0; i < kWarpSize; ++i) ASSERT_EQ(words[i], first + i + round);
    }
  });
}

TEST(SimtBlock, NobodyPassesTheBarrierBeforeAllAreThere) {
  uint32_t arrived = 0;
  run_block([&] {
    for (uint32_t round = 1; round <= 20; ++round) {
      if (me() % 5 == round % 5) rest();
      ++arrived;
      ASSERT_EQ(meet_in_block(me() % 2), kThreads / 2);
      ASSERT_EQ(arrived, round * kThreads);
      meet_in_block(0);
    }
  });
}

TEST(SimtBlock, ThreadsThatHaveEndedAreNotWaitedFor) {
  uint32_t through = 0;
  run_block([&] {
    if (me() < kWarpSize) return;
    meet_in_block(0);
    ++through;
  });
  EXPECT_EQ(through, kThreads - kWarpSize);
}

// A thread that rests while it holds a lock lets the other threads of the host's one thread run.
TEST(SimtBlock, WhoRestsLetsTheOthersGoOn) {
  uint32_t lock = 0;
  uint32_t holders = 0;
  run_block([&] {
    while (lock != 0) rest();
    lock = 1;
    rest();
    ++holders;
    lock = 0;
  });
  EXPECT_EQ(holders, kThreads);
}

// One lane looks whether something has come, and tells the others: the host's thread sleeps
// meanwhile.
TEST(SimtBlock, AWarpThatPollsTakesNoProcessor) {
  const auto processor_time = [] {
    timespec now{};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  const auto waited = std::chrono::milliseconds(200);
  const auto used_before = processor_time();
  const auto end = std::chrono::steady_clock::now() + waited;
  run_block([&] {
    while (true) {
      const bool over = me() % kWarpSize == 0 && std::chrono::steady_clock::now() >= end;
      if (me() % kWarpSize == 0 && !over) rest();
      const uint64_t* const words = exchange_in_warp(~0u, over ? 1 : 0, Together::kShuffle);
      if (words[0] != 0) return;
    }
  });
  EXPECT_LT(processor_time() - used_before, waited / 2);
}

TEST(SimtBlock, ARunnerRunsBlocksOfAnySize) {
  BlockRunner runner;
  for (const uint32_t threads : {32u, 1u, 256u, 64u}) {
    Place shape;
    shape.block_size = threads;
    shape.grid_size = 1;
    uint32_t sum = 0;
    runner.run(shape, 0, [&] {
      meet_in_block(0);
      sum += me() + 1;
    });
    EXPECT_EQ(sum, threads * (threads + 1) / 2);
  }
}

TEST(SimtBlockDeathTest, WaitingInVainIsTold) {
  EXPECT_DEATH(run_block([] {
                 if (me() % kWarpSize != 3) exchange_in_warp(~0u, 0, Together::kSync);
               }),
               "wait for each other in vain");
  EXPECT_DEATH(run_block([] {
                 if (me() != 40) {
                   meet_in_block(0);
                 } else {
                   exchange_in_warp(~0u, 0, Together::kVote);
                 }
               }),
               "wait for each other in vain");
}

TEST(SimtBlockDeathTest, LanesThatDoDifferentThingsTogetherAreTold) {
  EXPECT_DEATH(run_block([] {
                 exchange_in_warp(~0u, 0, me() % 2 == 0 ? Together::kVote : Together::kShuffle);
               }),
               "do different things together");
  EXPECT_DEATH(run_block([] { exchange_in_warp(0xffff, 0, Together::kVote); }), "part of a warp");
}

}  // namespace
}  // namespace simt
