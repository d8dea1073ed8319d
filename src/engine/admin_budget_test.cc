// SPDX-License-Identifier: Apache-2.0
#include "engine/admin_budget.h"

#include <gtest/gtest.h>

namespace warpcache::engine {
namespace {

constexpr AdminBudget::Clock::time_point kStart{std::chrono::seconds(100)};

// Commands of fresh entries that run at `now`, with as many batches as needed.
uint32_t allowed(AdminBudget& budget, bool datagram, AdminBudget::Clock::time_point now) {
  uint32_t count = 0;
  for (; count < 1000; ++count) {
    budget.begin_batch();
    if (!budget.allows(datagram, 0, now)) break;
    budget.count(datagram);
  }
  return count;
}

TEST(AdminBudget, AsManyAsInABatchAndThenTheRestOfTheTimeNone) {
  AdminBudget budget;
  for (int i = 0; i < 3; ++i) {
    const auto begin = kStart + i * AdminBudget::kWindow;
    EXPECT_EQ(allowed(budget, false, begin), kBatchAdminMax);
    EXPECT_EQ(allowed(budget, false, begin + AdminBudget::kWindow - std::chrono::nanoseconds(1)),
              0u);
  }
}

TEST(AdminBudget, StreamsTakeNothingFromDatagrams) {
  AdminBudget budget;
  EXPECT_EQ(allowed(budget, false, kStart), kBatchAdminMax);
  EXPECT_EQ(allowed(budget, true, kStart), kBatchAdminMax);
  EXPECT_EQ(allowed(budget, true, kStart + AdminBudget::kWindow), kBatchAdminMax);
  EXPECT_EQ(allowed(budget, false, kStart + AdminBudget::kWindow), kBatchAdminMax);
}

TEST(AdminBudget, OfABatchAndOfAnEntry) {
  AdminBudget budget(AdminBudget::Clock::duration::zero());
  budget.begin_batch();
  for (uint32_t i = 0; i < kBatchAdminMax; ++i) {
    ASSERT_TRUE(budget.allows(false, i % kEntryAdminMax, kStart));
    budget.count(false);
  }
  EXPECT_FALSE(budget.allows(false, 0, kStart));
  EXPECT_TRUE(budget.allows(true, 0, kStart));
  budget.begin_batch();
  EXPECT_TRUE(budget.allows(false, kEntryAdminMax - 1, kStart));
  EXPECT_FALSE(budget.allows(false, kEntryAdminMax, kStart));
  EXPECT_FALSE(budget.allows(true, kDatagramAdminMax, kStart));
}

TEST(AdminBudget, WithoutALimitInTime) {
  AdminBudget budget(AdminBudget::Clock::duration::zero());
  EXPECT_EQ(allowed(budget, false, kStart), 1000u);
  EXPECT_EQ(allowed(budget, true, kStart), 1000u);
}

}  // namespace
}  // namespace warpcache::engine
