// SPDX-License-Identifier: Apache-2.0
#include "engine/admin_window.h"

#include <gtest/gtest.h>

namespace warpcache::engine {
namespace {

TEST(AdminWindow, AsManyAsInABatchAndThenTheRestOfTheTimeNone) {
  AdminWindow window;
  const AdminWindow::Clock::time_point start{std::chrono::seconds(100)};
  for (int i = 0; i < 3; ++i) {
    const auto begin = start + i * AdminWindow::kLength;
    for (uint32_t j = 0; j < kBatchAdminMax; ++j) {
      EXPECT_TRUE(window.open(begin + std::chrono::microseconds(j)));
      window.count();
    }
    EXPECT_FALSE(window.open(begin + AdminWindow::kLength - std::chrono::nanoseconds(1)));
  }
}

}  // namespace
}  // namespace warpcache::engine
