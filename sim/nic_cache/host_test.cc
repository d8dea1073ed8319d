// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>

#include "nic_cache/store_host.h"
#include "workload/random.h"

namespace warpcache::nic {
namespace {

Item dirty_item(uint32_t key, uint32_t value, uint32_t bytes) { return {key, value, bytes, true}; }

TEST(LruHost, ReturnsWhatWasSetAndIsClean) {
  LruHost host(4, 0);
  EXPECT_FALSE(host.get(1));
  host.set(dirty_item(1, 10, 5));
  host.set(dirty_item(1, 11, 6));
  ASSERT_TRUE(host.get(1));
  EXPECT_EQ(host.get(1)->value, 11u);
  EXPECT_FALSE(host.get(1)->dirty);
  EXPECT_EQ(host.bytes(), 6u);
  host.erase(1);
  EXPECT_FALSE(host.get(1));
  EXPECT_EQ(host.bytes(), 0u);
  EXPECT_EQ(host.counters().gets, 5u);
  EXPECT_EQ(host.counters().get_misses, 2u);
}

TEST(LruHost, TheLeastRecentlyUsedItemIsEvicted) {
  LruHost host(8, 30);
  for (uint32_t key = 0; key < 3; ++key) host.set(dirty_item(key, key, 10));
  EXPECT_TRUE(host.get(0));
  host.set(dirty_item(5, 5, 15));  // needs two to go: 1, then 2
  EXPECT_TRUE(host.get(0));
  EXPECT_FALSE(host.get(1));
  EXPECT_FALSE(host.get(2));
  EXPECT_TRUE(host.get(5));
  EXPECT_EQ(host.counters().evictions, 2u);
  EXPECT_EQ(host.bytes(), 25u);
}

// Beside a list in order of use.
TEST(LruHost, IsLeastRecentlyUsed) {
  LruHost host(50, 20);
  std::list<uint32_t> newest_first;
  bench::Random random(3);
  for (uint32_t step = 0; step < 5000; ++step) {
    const auto key = static_cast<uint32_t>(random.next() % 50);
    const auto found = std::find(newest_first.begin(), newest_first.end(), key);
    const bool is_there = found != newest_first.end();
    if (is_there) newest_first.erase(found);
    switch (random.next() % 4) {
      case 0:
        host.set(dirty_item(key, step, 1));
        newest_first.push_front(key);
        if (newest_first.size() > 20) newest_first.pop_back();
        break;
      case 1:
        host.erase(key);
        break;
      default:
        ASSERT_EQ(host.get(key).has_value(), is_there) << step;
        if (is_there) newest_first.push_front(key);
    }
    ASSERT_EQ(host.bytes(), newest_first.size());
  }
}

// A store of 8 MiB, into which 16 MiB are put: it holds a part, and never another key's value or an
// older one.
TEST(StoreHost, HoldsWhatItsMemoryHolds) {
  constexpr uint32_t kManyKeys = 1u << 15;
  const auto host = StoreHost::create(kManyKeys, 8u << 20);
  ASSERT_NE(host, nullptr);
  EXPECT_FALSE(host->get(1));
  for (uint32_t key = 0; key < kManyKeys; ++key) host->set(dirty_item(key, key, 512));
  host->set(dirty_item(kManyKeys - 1, 77, 100));
  uint32_t found = 0;
  for (uint32_t key = 0; key + 1 < kManyKeys; ++key) {
    const auto there = host->get(key);
    if (!there) continue;
    ++found;
    ASSERT_EQ(there->value, key);
    ASSERT_EQ(there->bytes, 512u);
  }
  EXPECT_GT(found, kManyKeys / 4);
  EXPECT_LT(found, kManyKeys / 2);
  ASSERT_TRUE(host->get(kManyKeys - 1));
  EXPECT_EQ(host->get(kManyKeys - 1)->value, 77u);
  host->erase(kManyKeys - 1);
  EXPECT_FALSE(host->get(kManyKeys - 1));
}

}  // namespace
}  // namespace warpcache::nic
