// SPDX-License-Identifier: Apache-2.0
//
// Who stays when memory runs out.
#include <string>

#include "store/reclaim/survivor.h"
#include "store/reclaim/young_share.h"
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

// One item alone does not fill a segment, so the eviction that frees space for it would come with a
// later item.
TEST(Eviction, ALoneItemEvictsWithinASecond) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  const auto evicted = [&store] { return store->stats().get(StoreCounter::kEvicted); };
  const auto next_second = [&store] { store->set_clock(store->clock().now + 1); };
  pass_by(worker, 0, 1000, 1000);
  store->maintain();
  next_second();
  EXPECT_EQ(evicted(), 0u);  // not full
  pass_by(worker, 0, 20'000, 1000);
  store->maintain();
  const uint64_t before = evicted();
  EXPECT_GT(before, 0u);
  pass_by(worker, 20'000, 1, 1000);
  store->maintain();
  EXPECT_EQ(evicted(), before);
  next_second();
  const uint64_t after = evicted();
  EXPECT_GT(after, before);
  next_second();
  EXPECT_EQ(evicted(), after);  // once
  check_accounts(*store);
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
  rule.small_max = 125;
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

// Values of several segments each. That some of them stay must not make maintenance evict all that
// is used.
TEST(Eviction, LargeValuesThatAreUsedStay) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  ASSERT_LT(store->stats().segment_size, 20'000u);
  constexpr uint64_t kUsed = 60;  // a quarter of the memory
  const std::string value(64'000, 'v');
  for (uint64_t key = 0; key < kUsed; ++key) {
    ASSERT_EQ(worker.set(key_name(key), value), Status::kOk);
    ASSERT_TRUE(worker.get(key_name(key)));
  }
  uint64_t missed = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    ASSERT_EQ(worker.set("p" + std::to_string(i), value), Status::kOk);
    if (!worker.get(key_name(i % kUsed))) ++missed;
  }
  EXPECT_LT(missed, 300u);
  check_accounts(*store);
}

TEST(Eviction, ItemsBeginInMainAsIfUnused) {
  KeepRule rule;
  EXPECT_EQ(counter_after(rule, 2), 2u);
  rule.spend = Spend::kOne;
  EXPECT_EQ(counter_after(rule, 2), 1u);
  EXPECT_EQ(counter_after(rule, 0), 0u);
  rule.spend = Spend::kAll;
  EXPECT_EQ(counter_after(rule, 3), 0u);
}

class YoungShareTest : public testing::Test {
 protected:
  static constexpr uint64_t kItems = 8000;

  YoungShareTest() { shared_.young_share = kYoungShareStart; }
  // What eviction and requests count while a thousand items leave each generation.
  void pass(uint64_t young_returned, uint64_t main_returned) {
    for (uint64_t& evicted : shared_.evicted_from) evicted += 1000;
    shared_.returned_from[0] += young_returned;
    shared_.returned_from[1] += main_returned;
    share_.adapt(shared_, kItems);
  }

  Shared shared_ = {};
  YoungShare share_;
};

TEST_F(YoungShareTest, GrowsWhileMoreOfTheYoungComesBack) {
  pass(300, 100);
  EXPECT_GT(shared_.young_share, kYoungShareStart);
  for (int i = 0; i < 100; ++i) pass(300, 100);
  EXPECT_EQ(shared_.young_share, kYoungShareMax);
}

TEST_F(YoungShareTest, ShrinksWhileMoreOfMainComesBack) {
  pass(100, 300);
  EXPECT_LT(shared_.young_share, kYoungShareStart);
  for (int i = 0; i < 100; ++i) pass(100, 300);
  EXPECT_EQ(shared_.young_share, kYoungShareMin);
  for (int i = 0; i < 100; ++i) pass(300, 100);  // the load changes
  EXPECT_EQ(shared_.young_share, kYoungShareMax);
}

TEST_F(YoungShareTest, StaysWhileBothAreAlike) {
  for (int i = 0; i < 100; ++i) pass(100, 110);
  EXPECT_EQ(shared_.young_share, kYoungShareStart);
}

TEST_F(YoungShareTest, WaitsUntilThereIsEnoughToTell) {
  shared_.evicted_from[0] = kItems / 16;
  shared_.evicted_from[1] = kItems / 16 - 1;
  shared_.returned_from[0] = kItems / 16;
  share_.adapt(shared_, kItems);
  EXPECT_EQ(shared_.young_share, kYoungShareStart);
  ++shared_.evicted_from[1];
  share_.adapt(shared_, kItems);
  EXPECT_GT(shared_.young_share, kYoungShareStart);
}

// While main evicts nothing, more for the young generation would show no loss.
TEST_F(YoungShareTest, ShrinksWhileMainEvictsNothing) {
  shared_.evicted_from[0] = kItems;
  shared_.returned_from[0] = kItems / 2;
  share_.adapt(shared_, kItems);
  EXPECT_LT(shared_.young_share, kYoungShareStart);
}

// The more of what leaves the young generation comes back, and the less of the memory main has, the
// larger a small item may be.
TEST_F(YoungShareTest, SmallItemsAreLargerWhileMainIsNotFull) {
  constexpr uint32_t kMean = 1000;
  const auto small_max = [this](uint64_t young_returned, uint32_t young, uint32_t main) {
    for (int i = 0; i < 100; ++i) pass(young_returned, young_returned);
    shared_.young.segments = young;
    shared_.main.segments = main;
    return share_.small_max(shared_, kMean);
  };
  EXPECT_EQ(share_.small_max(shared_, kMean), kMean / 8);  // nothing is known yet
  EXPECT_EQ(small_max(0, 1000, 0), kMean / 8);
  EXPECT_NEAR(small_max(80, 1000, 0), 4 * 80, 10);
  EXPECT_NEAR(small_max(80, 500, 500), 4 * 80 / 2, 10);
  EXPECT_EQ(small_max(80, 100, 900), kMean / 8);
  EXPECT_EQ(small_max(500, 1000, 0), kMean * 2 / 5);
  EXPECT_EQ(share_.small_max(shared_, 0), 0u);
  EXPECT_EQ(share_.small_max(shared_, 1'000'000'000), 400'000'000u);
  shared_.young_share = kYoungShareOfDrift;
  EXPECT_EQ(share_.small_max(shared_, kMean), kMean / 2);
}

// How many of 200 items of a fifth of the mean size, for which nobody asks, are left when keys have
// passed by that fill the store twice. `come_back`: requests have counted that what was evicted is
// stored again.
uint64_t small_left(bool come_back) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker worker(store.get());
  Shared& shared = *store->ref().core.shared;
  constexpr uint64_t kSmall = 200;
  for (uint64_t i = 0; i < 50'000; ++i) {
    if (come_back) shared.returned_from[0] = shared.evicted_from[0];
    EXPECT_EQ(worker.set("p" + std::to_string(i), std::string(400, 'p')), Status::kOk);
    if (i >= 30'000 && i < 30'000 + kSmall) {  // it is known by then
      EXPECT_EQ(worker.set(key_name(i - 30'000), std::string(50, 'v')), Status::kOk);
    }
  }
  uint64_t left = 0;
  for (uint64_t key = 0; key < kSmall; ++key) left += worker.get(key_name(key)) ? 1u : 0u;
  return left;
}

TEST(Eviction, SmallItemsThatNobodyAskedForStayWhereOthersComeBackAndMainIsNotFull) {
  EXPECT_EQ(small_left(false), 0u);
  EXPECT_GT(small_left(true), 190u);
}

// Where the young generation has grown to most of what it may have, what was used long ago goes.
TEST(Eviction, MainForgetsWhileKeysChange) {
  EXPECT_EQ(main_spend(kYoungShareMin), Spend::kOne);
  EXPECT_EQ(main_spend(kYoungShareStart), Spend::kOne);
  EXPECT_EQ(main_spend(kYoungShareOfDrift - 1), Spend::kOne);
  EXPECT_EQ(main_spend(kYoungShareOfDrift), Spend::kAll);
  EXPECT_EQ(main_spend(kYoungShareMax), Spend::kAll);
}

// How many of 500 keys in main with three accesses each are still there when new ones have passed
// through main between two and three times.
uint64_t left_of_used(uint32_t young_share) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker worker(store.get());
  Shared& shared = *store->ref().core.shared;
  constexpr uint64_t kOld = 500;
  for (uint64_t key = 0; key < kOld; ++key) {
    EXPECT_EQ(worker.set(key_name(key), std::string(200, 'v')), Status::kOk);
    EXPECT_TRUE(worker.get(key_name(key)));
  }
  pass_by(worker, 0, 16'000);
  for (int i = 0; i < 3; ++i) {
    for (uint64_t key = 0; key < kOld; ++key) EXPECT_TRUE(worker.get(key_name(key)));
  }
  for (uint64_t i = 0; i < 50'000; ++i) {
    shared.young_share = young_share;
    const std::string key = "n" + std::to_string(i);
    EXPECT_EQ(worker.set(key, std::string(200, 'n')), Status::kOk);
    if (i % 2 == 0) {
      EXPECT_TRUE(worker.get(key));
    }
  }
  uint64_t left = 0;
  for (uint64_t key = 0; key < kOld; ++key) left += worker.get(key_name(key)) ? 1u : 0u;
  return left;
}

TEST(Eviction, MainForgetsFasterWhileKeysChange) {
  EXPECT_GT(left_of_used(kYoungShareOfDrift - 1), 450u);
  EXPECT_EQ(left_of_used(kYoungShareOfDrift), 0u);
}

TEST(Eviction, CountsWhatComesBack) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker worker(store.get());
  const Shared& shared = *store->ref().core.shared;
  EXPECT_EQ(shared.young_share, kYoungShareStart);
  constexpr uint64_t kKeys = 16'000;  // more than fit
  pass_by(worker, 0, kKeys);
  EXPECT_GT(shared.evicted_from[0], 0u);
  EXPECT_EQ(shared.evicted_from[0] + shared.evicted_from[1],
            store->stats().get(StoreCounter::kEvicted));
  EXPECT_EQ(shared.returned_from[0], 0u);
  pass_by(worker, 0, kKeys);
  EXPECT_GT(shared.returned_from[0], 0u);
  EXPECT_LE(shared.returned_from[0], shared.evicted_from[0]);
}

}  // namespace
}  // namespace warpcache::store
