// SPDX-License-Identifier: Apache-2.0
// Each replacement by hand, on one row of four ways.
#include "nic_cache/order.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace warpcache::nic {
namespace {

constexpr uint32_t kAll = 0b1111;

Geometry four_ways(Replacement replacement) {
  Geometry geometry;
  geometry.rows = 2;
  geometry.ways = 4;
  geometry.replacement = replacement;
  return geometry;
}

// Row 1 filled in the order of its ways, then used as told. Row 0 must not matter.
UseOrder filled(Replacement replacement, std::initializer_list<uint32_t> uses) {
  UseOrder order(four_ways(replacement));
  for (uint32_t way = 0; way < 4; ++way) order.stored(1, way);
  for (const uint32_t way : uses) order.used(1, way);
  order.stored(0, 3);
  return order;
}

TEST(Fifo, UsesDoNotMatter) {
  UseOrder order = filled(Replacement::kFifo, {0, 0, 1});
  EXPECT_EQ(order.victim(1, kAll), 0u);
  order.stored(1, 0);
  EXPECT_EQ(order.victim(1, kAll), 1u);
  order.stored(1, 1);
  order.used(1, 2);
  EXPECT_EQ(order.victim(1, kAll), 2u);
}

TEST(Lru, TheOneUsedLongestAgoGoes) {
  UseOrder order = filled(Replacement::kLru, {0, 2});
  EXPECT_EQ(order.victim(1, kAll), 1u);
  order.used(1, 1);
  EXPECT_EQ(order.victim(1, kAll), 3u);
  order.stored(1, 3);
  EXPECT_EQ(order.victim(1, kAll), 0u);
}

TEST(Lfu, TheOneUsedLeastGoesThenTheOneUsedLongestAgo) {
  UseOrder order = filled(Replacement::kLfu, {0, 0, 1, 2, 3, 3});
  EXPECT_EQ(order.victim(1, kAll), 1u);  // 1 and 2 once each, 1 before 2
  order.used(1, 1);
  EXPECT_EQ(order.victim(1, kAll), 2u);
  order.stored(1, 2);  // another key: its count begins anew
  EXPECT_EQ(order.victim(1, kAll), 2u);
  order.used(1, 2);
  order.used(1, 2);
  order.used(1, 2);
  EXPECT_EQ(order.victim(1, kAll), 0u);  // 0, 1 and 3 twice each after their storing
}

// The tree over ways 0 1 | 2 3, after uses 0 1 2 3: away from 3, then away from 1.
TEST(TreePlru, EachUseTurnsTheNodesAboveIt) {
  UseOrder order = filled(Replacement::kTreePlru, {});
  EXPECT_EQ(order.victim(1, kAll), 0u);
  order.used(1, 0);  // root points up, left node to 1
  EXPECT_EQ(order.victim(1, kAll), 2u);
  order.used(1, 2);  // root points down, right node to 3
  EXPECT_EQ(order.victim(1, kAll), 1u);
  order.used(1, 1);
  EXPECT_EQ(order.victim(1, kAll), 3u);
}

TEST(TreePlru, IsAlmostLru) {
  UseOrder right = filled(Replacement::kTreePlru, {2, 1, 3, 0});
  EXPECT_EQ(right.victim(1, kAll), 2u);
  // Way 2 was used longest ago, but 3 beside it last: the root points away from both.
  UseOrder wrong = filled(Replacement::kTreePlru, {1, 0, 3});
  EXPECT_EQ(wrong.victim(1, kAll), 1u);
}

TEST(BitPlru, TheFirstUnmarkedGoesAndTheLastMarkClearsTheOthers) {
  UseOrder order = filled(Replacement::kBitPlru, {});
  EXPECT_EQ(order.victim(1, kAll), 0u);  // storing 3 cleared 0 to 2
  order.used(1, 0);
  EXPECT_EQ(order.victim(1, kAll), 1u);
  order.used(1, 2);
  EXPECT_EQ(order.victim(1, kAll), 1u);
  order.used(1, 1);  // the last: only 1 stays marked
  EXPECT_EQ(order.victim(1, kAll), 0u);
}

TEST(EveryReplacement, TheVictimIsAmongTheFilled) {
  for (const auto replacement : {Replacement::kFifo, Replacement::kLru, Replacement::kLfu,
                                 Replacement::kTreePlru, Replacement::kBitPlru}) {
    for (uint32_t some = 1; some <= kAll; ++some) {
      for (uint32_t last = 0; last < 4; ++last) {
        UseOrder order = filled(replacement, {1, last});
        EXPECT_NE(some >> order.victim(1, some) & 1, 0u) << name(replacement) << " " << some;
      }
    }
  }
}

TEST(EveryReplacement, WorksWithOneWayAndWith32) {
  for (const auto replacement : {Replacement::kFifo, Replacement::kLru, Replacement::kLfu,
                                 Replacement::kTreePlru, Replacement::kBitPlru}) {
    Geometry geometry = four_ways(replacement);
    geometry.ways = 1;
    UseOrder one(geometry);
    one.stored(1, 0);
    EXPECT_EQ(one.victim(1, 1), 0u);
    geometry.ways = 32;
    UseOrder many(geometry);
    for (uint32_t way = 0; way < 32; ++way) many.stored(1, way);
    EXPECT_EQ(many.victim(1, ~uint32_t{0}), 0u) << name(replacement);
  }
}

TEST(Queued, WhatWasNeverUsedLeavesInTheOrderOfItsComing) {
  for (const auto replacement :
       {Replacement::kSieve, Replacement::kS3Fifo, Replacement::kTwoGenerations}) {
    EXPECT_EQ(filled(replacement, {}).victim(1, kAll), 0u) << name(replacement);
  }
}

// Ways 0 to 2 were used; SIEVE's hand has passed them then, and comes to way 0 next.
TEST(Queued, SieveSparesWhatWasUsed) {
  UseOrder order = filled(Replacement::kSieve, {0, 1, 2});
  EXPECT_EQ(order.victim(1, kAll), 3u);
  order.removed(1, 3);
  order.stored(1, 3, 7);
  EXPECT_EQ(order.victim(1, kAll), 0u);
}

// Those used twice are in the main queue then; new ones come and go in the small one.
TEST(Queued, S3FifoSparesWhatWasUsedTwice) {
  UseOrder order = filled(Replacement::kS3Fifo, {0, 0, 1, 1, 2, 2});
  for (uint32_t hash = 7; hash < 10; ++hash) {
    EXPECT_EQ(order.victim(1, kAll), 3u) << hash;
    order.removed(1, 3);
    order.stored(1, 3, hash * 1000);
  }
}

// One way may be young. Of three old ones each use is worth a stay.
TEST(Queued, TwoGenerationsSpendUses) {
  UseOrder order = filled(Replacement::kTwoGenerations, {0, 0, 1, 2, 2});
  EXPECT_EQ(order.victim(1, kAll), 1u);
  order.removed(1, 1);
  order.stored(1, 1, 7);
  EXPECT_EQ(order.victim(1, kAll), 3u);  // two are young: the older one goes
}

TEST(Queued, S3FifoRemembersWhatItEvicted) {
  UseOrder order = filled(Replacement::kS3Fifo, {});
  order.removed(1, order.victim(1, kAll));
  order.stored(1, 0, 77);
  order.removed(1, 1);  // not evicted: deleted
  order.stored(1, 1, 78);
  for (const uint32_t way : {2u, 3u, 0u}) {
    ASSERT_EQ(order.victim(1, kAll), way);
    order.removed(1, way);
    order.stored(1, way, way == 0 ? 77 : 80 + way);  // 77 comes back at once: it is a ghost
  }
  EXPECT_EQ(order.victim(1, kAll), 1u);
  order.removed(1, 1);
  order.stored(1, 1, 79);
  for (const uint32_t way : {2u, 3u, 1u}) {
    ASSERT_EQ(order.victim(1, kAll), way);  // way 0, the ghost, is in the main queue
    order.removed(1, way);
    order.stored(1, way, 90 + way);
  }
}

}  // namespace
}  // namespace warpcache::nic
