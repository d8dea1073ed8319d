// SPDX-License-Identifier: Apache-2.0
//
// Who stays when memory runs out.
#include <string>

#include "store/reclaim/survivor.h"
#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

// Stores keys that nobody asks for.
void pass_by(Worker& worker, uint64_t first, uint64_t count, size_t size = 200) {
  for (uint64_t i = first; i < first + count; ++i) {
    ASSERT_EQ(worker.set("p" + std::to_string(i), std::string(size, 'p')), Status::kOk);
  }
}

TEST(Eviction, WhoComesBackStays) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker worker(store.get());
  constexpr uint64_t kFull = 16'000;  // more than fit
  const auto set = [&worker](const std::string& key) {
    ASSERT_EQ(worker.set(key, std::string(200, 'v')), Status::kOk);
  };
  set("again");
  pass_by(worker, 0, kFull);
  ASSERT_FALSE(worker.get("again"));
  set("again");
  set("first time");
  pass_by(worker, kFull, kFull);
  EXPECT_TRUE(worker.get("again"));
  EXPECT_FALSE(worker.get("first time"));
}

TEST(Eviction, NobodyIsRememberedForEver) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker worker(store.get());
  ASSERT_EQ(worker.set("again", std::string(200, 'v')), Status::kOk);
  pass_by(worker, 0, 200'000);
  ASSERT_EQ(worker.set("again", std::string(200, 'v')), Status::kOk);
  pass_by(worker, 200'000, 16'000);
  EXPECT_FALSE(worker.get("again"));
}

TEST(Eviction, LargerItemsNeedMoreAccesses) {
  KeepRule rule;
  rule.counter_min = 1;
  EXPECT_EQ(accesses_needed(rule, 1'000'000), 1u);
  rule.mean = 1000;
  EXPECT_EQ(accesses_needed(rule, 1000), 1u);
  EXPECT_EQ(accesses_needed(rule, 7999), 1u);
  EXPECT_EQ(accesses_needed(rule, 8000), 2u);
  EXPECT_EQ(accesses_needed(rule, 64'000), 3u);
  EXPECT_EQ(accesses_needed(rule, 126), 1u);
  EXPECT_EQ(accesses_needed(rule, 125), 0u);
}

// What is an eighth of the mean stays, but no more of it than that allows.
TEST(Eviction, SmallItemsDoNotTakeTheMemory) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  uint64_t small_last = 0;
  for (uint64_t i = 0; i < 300'000; ++i) {
    const bool large = i % 100 == 0;
    if (!large) small_last = i;
    ASSERT_EQ(worker.set(key_name(i), std::string(large ? 8000 : 50, 'v')), Status::kOk);
  }
  EXPECT_GT(store->stats().get(StoreCounter::kEvicted), 100'000u);
  EXPECT_TRUE(worker.get(key_name(small_last)));
  uint64_t old = 0;
  for (uint64_t i = 1; i < 100'000; i += 100) old += worker.get(key_name(i)) ? 1u : 0u;
  EXPECT_LT(old, 100u);
}

TEST(Eviction, SmallItemsOutliveLargeOnes) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  const auto is_large = [](uint64_t key) { return key % 5 == 0; };
  for (uint64_t key = 0; key < 1000; ++key) {
    const size_t size = is_large(key) ? 30'000 : 10;
    ASSERT_EQ(worker.set(key_name(key), std::string(size, 'v')), Status::kOk);
    ASSERT_EQ(!is_large(key) || worker.get(key_name(key)), true);
  }
  pass_by(worker, 0, 20'000, 1000);
  uint64_t small = 0;
  uint64_t large = 0;
  for (uint64_t key = 0; key < 1000; ++key) {
    if (worker.get(key_name(key))) ++(is_large(key) ? large : small);
  }
  EXPECT_EQ(small, 800u);  // although nobody asked for them
  EXPECT_LT(large, 20u);
}

}  // namespace
}  // namespace warpcache::store
