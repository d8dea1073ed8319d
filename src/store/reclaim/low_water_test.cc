// SPDX-License-Identifier: Apache-2.0
#include "store/reclaim/low_water.h"

#include <gtest/gtest.h>

#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

class LowWaterTest : public testing::Test {
 protected:
  static constexpr uint32_t kLeast = 10 + 6400 / 64;
  static constexpr uint32_t kMost = 10 + 6400 / 16;

  LowWaterTest() {
    shared_.copy_reserve = 10;
    shared_.segment_limit = 6400;
    shared_.low_water_share = 64;
    shared_.low_water_share_max = 16;
    shared_.now = 100;
    mark_.follow_limit(shared_);
  }

  Shared shared_ = {};
  LowWater mark_;
};

TEST_F(LowWaterTest, RisesWhileRequestsFindNoSpace) {
  EXPECT_EQ(shared_.low_water, kLeast);
  mark_.raise(shared_);
  EXPECT_GT(shared_.low_water, kLeast);
  EXPECT_LT(shared_.low_water, kLeast + 50);
  for (int i = 0; i < 100; ++i) mark_.raise(shared_);
  EXPECT_EQ(shared_.low_water, kMost);
}

TEST_F(LowWaterTest, FallsWhenTheyFindIt) {
  for (int i = 0; i < 100; ++i) mark_.raise(shared_);
  mark_.relax(shared_);  // within the same second
  EXPECT_EQ(shared_.low_water, kMost);
  ++shared_.now;
  mark_.relax(shared_);
  mark_.relax(shared_);
  EXPECT_EQ(shared_.low_water, kLeast + (kMost - kLeast) / 2);
  for (int i = 0; i < 20; ++i) {
    ++shared_.now;
    mark_.relax(shared_);
  }
  EXPECT_EQ(shared_.low_water, kLeast);
}

TEST_F(LowWaterTest, FollowsTheLimit) {
  for (int i = 0; i < 100; ++i) mark_.raise(shared_);
  shared_.segment_limit = 1600;
  mark_.follow_limit(shared_);
  EXPECT_EQ(shared_.low_water, 10u + 1600 / 16);
  mark_.raise(shared_);
  EXPECT_EQ(shared_.low_water, 10u + 1600 / 16);
  ++shared_.now;
  mark_.relax(shared_);  // half of what a store of this limit may add
  EXPECT_EQ(shared_.low_water, 10u + 1600 / 64 + (1600 / 16 - 1600 / 64) / 2);
  shared_.segment_limit = 64;  // two segments are free in any case, and no more than a sixteenth
  mark_.follow_limit(shared_);
  EXPECT_EQ(shared_.low_water, 10u + 64 / 16);
}

TEST_F(LowWaterTest, StaysWhereItMayNotRise) {
  shared_.low_water_share_max = 0;
  mark_.raise(shared_);
  EXPECT_EQ(shared_.low_water, kLeast);
  shared_.low_water_share_max = 16;
  shared_.keep_all = true;
  mark_.raise(shared_);
  EXPECT_EQ(shared_.low_water, kLeast);
}

// What a store has free after requests that found no space.
uint64_t free_after_sets(uint32_t share_max) {
  StoreConfig config = quiet_config(16 * kMiB);
  config.segment_size = 16 * 1024;
  config.low_water_share_max = share_max;
  const auto store = make_store(config);
  Worker worker(store.get());
  for (uint64_t i = 0; i < 60'000; ++i) {
    EXPECT_EQ(worker.set(key_name(i), make_value(i, 1, 500)), Status::kOk);
  }
  store->maintain();
  return store->stats().free_segments;
}

TEST(LowWater, OfAStoreWhoseRequestsFindNoSpace) {
  EXPECT_GT(free_after_sets(16), 2 * free_after_sets(0));
}

}  // namespace
}  // namespace warpcache::store
