// SPDX-License-Identifier: Apache-2.0
#include "base/bits.h"

#include <gtest/gtest.h>

namespace warpcache {
namespace {

TEST(Bits, LowestAndHighest) {
  for (uint32_t bit = 0; bit < 64; ++bit) {
    const uint64_t one = uint64_t{1} << bit;
    EXPECT_EQ(lowest_bit(one), bit);
    EXPECT_EQ(highest_bit(one), bit);
    EXPECT_EQ(lowest_bit(one | uint64_t{1} << 63), bit);
    EXPECT_EQ(highest_bit(one | 1), bit);
    if (bit >= 32) continue;
    const uint32_t narrow = uint32_t{1} << bit;
    EXPECT_EQ(lowest_bit(narrow | uint32_t{1} << 31), bit);
    EXPECT_EQ(highest_bit(narrow | 1u), bit);
  }
}

TEST(Bits, Rounding) {
  EXPECT_EQ(divided_up(0u, 8u), 0u);
  EXPECT_EQ(divided_up(1u, 8u), 1u);
  EXPECT_EQ(divided_up(8u, 8u), 1u);
  EXPECT_EQ(divided_up(9u, 8u), 2u);
  EXPECT_EQ(rounded_up(uint64_t{0}, uint64_t{10}), 0u);
  EXPECT_EQ(rounded_up(uint64_t{1} << 40 | 1, uint64_t{4096}), (uint64_t{1} << 40) + 4096);
}

}  // namespace
}  // namespace warpcache
