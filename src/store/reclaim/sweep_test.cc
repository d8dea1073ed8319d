// SPDX-License-Identifier: Apache-2.0
//
// What has expired or been flushed is soon counted no longer, wherever it lies.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/testing/effort.h"
#include "store/reclaim/maintainer.h"
#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

uint64_t items_of(const Store& store) { return store.stats().get(StoreCounter::kItems); }
uint64_t bytes_of(const Store& store) { return store.stats().get(StoreCounter::kBytes); }

void pass_seconds(Store& store, uint32_t seconds) {
  for (uint32_t i = 0; i < seconds; ++i) store.set_clock(store.clock().now + 1);
}

TEST(Sweep, FlushedItemsOfAnOpenSegmentAreCountedNoLonger) {
  const auto store = make_store(quiet_config(8 * kMiB));
  Worker worker(store.get());
  for (uint64_t key = 0; key < 1000; ++key) {
    ASSERT_EQ(worker.set(key_name(key), "value"), Status::kOk);
  }
  store->flush_all();
  ASSERT_EQ(worker.set("later", "value"), Status::kOk);
  pass_seconds(*store, 1);
  EXPECT_EQ(items_of(*store), 1u);
  EXPECT_EQ(bytes_of(*store), item_bytes(5, 5));
  EXPECT_TRUE(worker.get("later"));
}

TEST(Sweep, ExpiredItemsBesideOthersAreCountedNoLonger) {
  const auto store = make_store(quiet_config(8 * kMiB));
  Worker worker(store.get());
  store->set_clock(10);
  for (uint64_t key = 0; key < 1000; ++key) {
    const uint32_t expiry = key % 3 == 0 ? 0 : key % 3 == 1 ? 12 : 20;
    ASSERT_EQ(worker.set(key_name(key), "value", expiry), Status::kOk);
  }
  pass_seconds(*store, 1);
  EXPECT_EQ(items_of(*store), 1000u);
  pass_seconds(*store, 1);
  EXPECT_EQ(items_of(*store), 667u);
  pass_seconds(*store, 8);
  EXPECT_EQ(items_of(*store), 334u);
  for (uint64_t key = 0; key < 1000; ++key) ASSERT_EQ(worker.get(key_name(key)), key % 3 == 0);
}

TEST(Sweep, LargeValuesGiveTheirSegmentsBack) {
  const auto store = make_store(quiet_config(8 * kMiB));
  Worker worker(store.get());
  const uint64_t free_before = store->stats().free_segments;
  ASSERT_EQ(worker.set("large", std::string(kMiB, 'x'), store->clock().now + 2), Status::kOk);
  pass_seconds(*store, 2);
  EXPECT_EQ(items_of(*store), 0u);
  EXPECT_EQ(bytes_of(*store), 0u);
  pass_seconds(*store, 1);
  EXPECT_EQ(store->stats().free_segments, free_before);
}

// A second's share of a store that is larger than that; all of it in the end.
TEST(Sweep, WorkOfASecondIsBounded) {
  if (thread_sanitizer_by_day()) GTEST_SKIP() << "tested at night";
  constexpr uint64_t kKeys = 600'000;
  const auto store = make_store(quiet_config(128 * kMiB));
  Worker worker(store.get());
  for (uint64_t key = 0; key < kKeys; ++key) {
    ASSERT_EQ(worker.set(key_name(key), "value"), Status::kOk);
  }
  ASSERT_EQ(items_of(*store), kKeys);
  store->flush_all();
  uint64_t left = kKeys;
  uint32_t seconds = 0;
  for (; left != 0; ++seconds) {
    ASSERT_LT(seconds, 20u);
    pass_seconds(*store, 1);
    const uint64_t now = items_of(*store);
    ASSERT_LT(now, left);
    constexpr uint64_t kShare = uint64_t{Maintainer::kSweepStepsMax} * detail::kSweepPairsMax *
                                (2 + kOverflowChainMax) * kWays;
    ASSERT_LE(left - now, kShare);
    left = now;
  }
  EXPECT_GT(seconds, 1u);
}

// While a thread stores items, no live item counts as dead.
TEST(Sweep, LeavesWhatIsStoredMeanwhile) {
  const auto store = make_store(quiet_config(32 * kMiB));
  Worker worker(store.get());
  constexpr uint64_t kKeys = 20'000;
  std::atomic<bool> stop{false};
  std::thread clock([&] {
    while (!stop) {
      store->flush_all();
      pass_seconds(*store, 1);
    }
  });
  for (uint64_t round = 0; round < 10; ++round) {
    for (uint64_t key = 0; key < kKeys; ++key) {
      ASSERT_EQ(worker.set(key_name(key), "value"), Status::kOk);
    }
  }
  stop = true;
  clock.join();
  for (uint64_t key = 0; key < kKeys; ++key) {
    ASSERT_EQ(worker.set(key_name(key), "value"), Status::kOk);
  }
  pass_seconds(*store, 3);
  for (uint64_t key = 0; key < kKeys; ++key) ASSERT_TRUE(worker.get(key_name(key)));
  EXPECT_EQ(items_of(*store), kKeys);
}

}  // namespace
}  // namespace warpcache::store
