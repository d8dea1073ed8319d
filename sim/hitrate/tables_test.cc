// SPDX-License-Identifier: Apache-2.0
// Hopscotch, strided probing and cuckoo hashing, by small cases worked out by hand.
#include <gtest/gtest.h>

#include "hitrate/cuckoo.h"
#include "hitrate/probing.h"
#include "hitrate/test_util.h"

namespace warpcache::sim {
namespace {

constexpr uint32_t kSize = 1024;

Key home(uint64_t id, uint32_t place) { return key_at(id, place, kSize); }

TEST(Strided, AKeyMayBeInSixteenPlacesFourApart) {
  StridedProbing cache(64);
  const auto at = [](uint64_t id, uint32_t place) { return key_at(id, place, 64); };
  for (uint64_t id = 0; id < 16; ++id) set(&cache, at(id, 0));
  set(&cache, at(100, 1));
  EXPECT_EQ(cache.items(), 17u);
  EXPECT_TRUE(holds(&cache, at(0, 0)));  // used: the oldest is 1 now
  set(&cache, at(16, 0));
  EXPECT_FALSE(holds(&cache, at(1, 0)));
  // The group of place 4 has the same places in a table of 64: 2 is the next.
  set(&cache, at(17, 4));
  EXPECT_FALSE(holds(&cache, at(2, 0)));
  for (const uint64_t id : {0u, 3u, 16u}) EXPECT_TRUE(holds(&cache, at(id, 0))) << id;
  EXPECT_TRUE(holds(&cache, at(100, 1)));
}

TEST(Hopscotch, AFreePlaceFarAwayIsMovedNear) {
  Hopscotch cache(kSize);
  for (uint32_t id = 0; id < 20; ++id) set(&cache, home(id, id));
  set(&cache, home(100, 0), 7);  // the first free place is 20, 16 is out of reach: 5 moves there
  EXPECT_EQ(cache.items(), 21u);
  uint32_t value = 0;
  ASSERT_TRUE(cache.get(home(100, 0), &value));
  EXPECT_EQ(value, 7u);
  for (uint32_t id = 0; id < 20; ++id) EXPECT_TRUE(holds(&cache, home(id, id))) << id;
}

TEST(Hopscotch, EvictsInItsGroupWhereNothingMayMove) {
  Hopscotch cache(kSize);
  for (uint32_t id = 0; id < 16; ++id) set(&cache, home(id, 0));
  EXPECT_TRUE(holds(&cache, home(0, 0)));
  set(&cache, home(16, 0));  // place 16 is free, but all nearer keys belong to place 0
  EXPECT_EQ(cache.items(), 16u);
  EXPECT_FALSE(holds(&cache, home(1, 0)));
  EXPECT_TRUE(holds(&cache, home(0, 0)));
  EXPECT_TRUE(holds(&cache, home(16, 0)));
}

TEST(Hopscotch, SearchesNoFurtherThanItsReach) {
  Hopscotch cache(kSize);
  for (uint32_t id = 0; id < Hopscotch::kReach; ++id) set(&cache, home(id, id));
  set(&cache, home(5000, 0));
  EXPECT_EQ(cache.items(), Hopscotch::kReach);
  EXPECT_FALSE(holds(&cache, home(0, 0)));  // the oldest of places 0 to 15
  set(&cache, home(5001, 1));               // 512 is free and within reach of 1
  EXPECT_EQ(cache.items(), Hopscotch::kReach + 1);
}

TEST(Hopscotch, GoesRoundTheTablesEnd) {
  Hopscotch cache(kSize);
  for (uint32_t id = 0; id < 40; ++id) set(&cache, home(id, (kSize - 20 + id) % kSize));
  set(&cache, home(100, kSize - 20));
  EXPECT_EQ(cache.items(), 41u);
  for (uint32_t id = 0; id < 40; ++id) {
    EXPECT_TRUE(holds(&cache, home(id, (kSize - 20 + id) % kSize))) << id;
  }
  EXPECT_TRUE(holds(&cache, home(100, kSize - 20)));
}

// A key with these two buckets of a cuckoo table of `count`.
Key with_buckets(uint64_t id, uint32_t first, uint32_t second, uint32_t count) {
  // The inverse of MurmurHash2's constant modulo 2^32, by Newton's iteration.
  uint32_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - 0x5bd1e995u * inverse;
  const uint64_t sum = (uint64_t{first} + second) % count;
  const auto mixed = static_cast<uint32_t>(((sum << 32) + count - 1) / count);
  return key_at(id, first, count, mixed * inverse);
}

TEST(Cuckoo, AChainOfKeysMovesOn) {
  Cuckoo cache(8, 1, 1);
  const Key a = with_buckets(1, 0, 3, 8), b = with_buckets(2, 0, 1, 8),
            c = with_buckets(3, 0, 1, 8);
  set(&cache, a, 10);  // 0
  set(&cache, b, 20);  // 1
  set(&cache, c, 30);  // takes 1, b takes 0, a takes 3
  EXPECT_EQ(cache.items(), 3u);
  uint32_t value = 0;
  EXPECT_TRUE(cache.get(a, &value) && value == 10);
  EXPECT_TRUE(cache.get(b, &value) && value == 20);
  EXPECT_TRUE(cache.get(c, &value) && value == 30);
}

TEST(Cuckoo, WithoutAFreeEntryTheLeastUsedOfTheChainGoes) {
  Cuckoo cache(8, 1, 1);
  const Key a = with_buckets(1, 0, 1, 8), b = with_buckets(2, 0, 1, 8),
            c = with_buckets(3, 0, 2, 8), d = with_buckets(4, 0, 1, 8);
  set(&cache, a);
  set(&cache, b);
  set(&cache, c);  // 2: not in the chain of 0 and 1
  EXPECT_TRUE(holds(&cache, a));
  set(&cache, d);
  EXPECT_EQ(cache.items(), 3u);
  EXPECT_FALSE(holds(&cache, b));
  EXPECT_TRUE(holds(&cache, a) && holds(&cache, c) && holds(&cache, d));
}

TEST(Cuckoo, BucketsOfFourHoldEightOfTwoBuckets) {
  Cuckoo cache(32, 4, 1);
  for (uint64_t id = 0; id < 8; ++id) set(&cache, with_buckets(id, 2, 5, 8));
  EXPECT_EQ(cache.items(), 8u);
  for (uint64_t id = 0; id < 8; ++id) EXPECT_TRUE(holds(&cache, with_buckets(id, 2, 5, 8))) << id;
  set(&cache, with_buckets(8, 2, 5, 8));
  EXPECT_EQ(cache.items(), 8u);
  EXPECT_TRUE(holds(&cache, with_buckets(8, 2, 5, 8)));
  EXPECT_FALSE(holds(&cache, with_buckets(0, 2, 5, 8)));  // 512 random steps met it
}

}  // namespace
}  // namespace warpcache::sim
