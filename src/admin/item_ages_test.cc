// SPDX-License-Identifier: Apache-2.0
#include "admin/item_ages.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "admin/stats_command.h"

namespace warpcache::admin {
namespace {

constexpr int64_t kNow = 2'000'000'000;

// A store whose index has one item of 100 bytes at each place, 4 places a part. It counts parts.
class AgedStore final : public StatsSource {
 public:
  explicit AgedStore(std::vector<int64_t> ages) : ages_(std::move(ages)) {}

  StatsSnapshot snapshot() override {
    StatsSnapshot snapshot;
    snapshot.unix_time = kNow;
    snapshot.items = ages_.size();
    snapshot.walk_places = ages_.size();
    snapshot.item_bytes = 100 * ages_.size();
    return snapshot;
  }
  SettingsSnapshot settings() override { return {}; }
  void list_connections(uint64_t&, const std::function<void(const ConnectionSnapshot&)>&) override {
  }
  Status walk(uint64_t& cursor, const std::function<void(const DumpItem&)>& visit) override {
    ++parts_;
    if (failed_) return Status::kNotSupported;
    EXPECT_LT(cursor, ages_.size());
    for (int i = 0; i < 4 && cursor < ages_.size(); ++i) {
      visit({.key = "k", .item_bytes = 100, .accessed_unix = kNow - ages_[cursor++]});
    }
    if (cursor >= ages_.size()) cursor = kWalkEnd;
    return Status::kOk;
  }

  std::vector<int64_t> ages_;
  uint32_t parts_ = 0;
  bool failed_ = false;
};

TEST(ItemAges, OfASmallStoreAreExact) {
  AgedStore store({0, 1, 2, 10, 11, 60, 3600, 700'000, -5});
  ItemAges ages;
  const ItemAges::Estimate seen = ages.look(store, store.snapshot());
  const std::array<uint64_t, ItemAges::kSteps> expected = {300, 200, 200, 0, 100, 0, 0, 0, 100};
  EXPECT_EQ(seen.bytes, expected);
  EXPECT_EQ(seen.oldest_s, 700'000u);
  EXPECT_EQ(store.parts_, 3u);
}

TEST(ItemAges, OfALargeStoreAreASamples) {
  // A quarter is old, in one piece.
  std::vector<int64_t> given(1'000'000, 5);
  std::fill(given.begin(), given.begin() + 250'000, 5000);
  AgedStore store(std::move(given));
  ItemAges ages;
  const ItemAges::Estimate seen = ages.look(store, store.snapshot());
  EXPECT_EQ(store.parts_, ItemAges::kItemsEnough / 4);
  EXPECT_NEAR(static_cast<double>(seen.bytes[1]), 75e6, 3e6);
  EXPECT_NEAR(static_cast<double>(seen.bytes[5]), 25e6, 3e6);
  EXPECT_EQ(seen.oldest_s, 5000u);
}

TEST(ItemAges, AreLookedAtOnceASecond) {
  AgedStore store({1, 2, 3});
  ItemAges ages;
  StatsSnapshot snapshot = store.snapshot();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ages.look(store, snapshot).oldest_s, 3u);
  EXPECT_EQ(store.parts_, 1u);
  snapshot.unix_time += 1;
  EXPECT_EQ(ages.look(store, snapshot).oldest_s, 4u);
  EXPECT_EQ(store.parts_, 2u);
}

TEST(ItemAges, OfAnEmptyOrFailedStoreAreNone) {
  AgedStore store({1});
  StatsSnapshot empty = store.snapshot();
  store.failed_ = true;
  ItemAges ages;
  EXPECT_EQ(ages.look(store, empty).oldest_s, 0u);
}

}  // namespace
}  // namespace warpcache::admin
