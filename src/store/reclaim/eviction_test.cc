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
  EXPECT_EQ(accesses_needed(rule, 3999), 1u);
  EXPECT_EQ(accesses_needed(rule, 4000), 2u);
  EXPECT_EQ(accesses_needed(rule, 64'000), 3u);
  EXPECT_EQ(accesses_needed(rule, 250), 0u);
  // In the main generation an item that needs none would never leave.
  rule.spend = true;
  EXPECT_EQ(accesses_needed(rule, 250), 1u);
}

TEST(Eviction, SmallItemsOutliveLargeOnes) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  for (uint64_t i = 0; i < 1000; ++i) {
    const bool small = i % 2 == 0;
    ASSERT_EQ(worker.set(key_name(i), std::string(small ? 50 : 8000, 'v')), Status::kOk);
    ASSERT_EQ(small || worker.get(key_name(i)), true);
  }
  pass_by(worker, 0, 12'000, 1500);
  uint64_t small = 0;
  uint64_t large = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    if (worker.get(key_name(i))) ++(i % 2 == 0 ? small : large);
  }
  EXPECT_EQ(small, 500u);  // although nobody asked for them
  EXPECT_LT(large, 50u);
}

}  // namespace
}  // namespace warpcache::store
