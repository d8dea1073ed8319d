// SPDX-License-Identifier: Apache-2.0
#include "base/first_of_most.h"

#include <gtest/gtest.h>

namespace warpcache {
namespace {

TEST(FirstOfMost, IsTheOldestOfWhoHasTheMost) {
  using Owners = std::array<uint64_t, 8>;
  EXPECT_EQ(first_of_most(Owners{7}, 1), 0u);
  EXPECT_EQ(first_of_most(Owners{5, 6, 7}, 3), 0u);           // one each: the oldest of all
  EXPECT_EQ(first_of_most(Owners{5, 6, 7, 6}, 4), 1u);        //
  EXPECT_EQ(first_of_most(Owners{5, 6, 7, 7, 6, 5}, 6), 0u);  // two each
  EXPECT_EQ(first_of_most(Owners{1, 2, 9, 9, 9, 2, 1, 9}, 8), 2u);
  EXPECT_EQ(first_of_most(Owners{1, 2, 2, 2, 2, 2}, 2), 0u);  // what is above `count` is no owner
}

}  // namespace
}  // namespace warpcache
