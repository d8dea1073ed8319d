// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/cache.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "workload/random.h"

namespace warpcache::nic {
namespace {

constexpr uint32_t kRowBits = 2;

Geometry small(uint32_t ways, uint32_t tag_bits) {
  Geometry geometry;
  geometry.rows = 1u << kRowBits;
  geometry.ways = ways;
  geometry.tag_bits = tag_bits;
  geometry.replacement = Replacement::kLru;
  geometry.slot_bytes = 64;
  return geometry;
}

// A hash with this row and this lower end.
uint32_t hash_at(uint32_t row, uint32_t low) { return row << (32 - kRowBits) | low; }

Item item(uint32_t key, uint32_t value, uint32_t bytes = 10) { return {key, value, bytes, false}; }

TEST(NicCache, AHitIsTheKeysLastValue) {
  NicCache cache(small(2, 4));
  std::vector<Item> gone;
  EXPECT_EQ(cache.find(7, hash_at(1, 3)), nullptr);
  cache.put(item(7, 70), hash_at(1, 3), &gone);
  cache.put(item(7, 71), hash_at(1, 3), &gone);
  ASSERT_NE(cache.find(7, hash_at(1, 3)), nullptr);
  EXPECT_EQ(cache.find(7, hash_at(1, 3))->value, 71u);
  EXPECT_EQ(cache.items(), 1u);
  EXPECT_TRUE(gone.empty());
}

TEST(NicCache, AnotherKeyOfTheSameTagIsNoHitAndTakesItsPlace) {
  NicCache cache(small(2, 4));
  std::vector<Item> gone;
  cache.put(item(7, 70), hash_at(1, 0x103), &gone);
  EXPECT_EQ(cache.find(8, hash_at(1, 0x203)), nullptr);  // tag 3 too
  EXPECT_EQ(cache.counters().false_hits, 1u);
  cache.put(item(8, 80), hash_at(1, 0x203), &gone);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].key, 7u);
  EXPECT_EQ(cache.counters().tag_overwrites, 1u);
  EXPECT_EQ(cache.find(7, hash_at(1, 0x103)), nullptr);
  EXPECT_EQ(cache.items(), 1u);
}

TEST(NicCache, AFullRowGivesUpItsVictimAndOtherRowsNothing) {
  NicCache cache(small(2, 4));
  std::vector<Item> gone;
  cache.put(item(1, 10), hash_at(0, 1), &gone);
  cache.put(item(2, 20), hash_at(0, 2), &gone);
  cache.put(item(3, 30), hash_at(3, 3), &gone);
  EXPECT_NE(cache.find(1, hash_at(0, 1)), nullptr);  // so 2 is the least recently used
  cache.put(item(4, 40), hash_at(0, 4), &gone);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].key, 2u);
  EXPECT_EQ(cache.counters().evictions, 1u);
  EXPECT_EQ(cache.items(), 3u);
}

TEST(NicCache, WithoutTagsARowHoldsOneItem) {
  NicCache cache(small(8, 0));
  std::vector<Item> gone;
  for (uint32_t key = 0; key < 8; ++key) cache.put(item(key, key), hash_at(2, key), &gone);
  EXPECT_EQ(cache.items(), 1u);
  EXPECT_EQ(gone.size(), 7u);
  EXPECT_NE(cache.find(7, hash_at(2, 7)), nullptr);
}

TEST(NicCache, EraseLooksAtTheKeyEraseTagDoesNot) {
  NicCache cache(small(2, 4));
  std::vector<Item> gone;
  cache.put(item(7, 70), hash_at(1, 0x103), &gone);
  EXPECT_FALSE(cache.erase(8, hash_at(1, 0x203)));
  EXPECT_NE(cache.find(7, hash_at(1, 0x103)), nullptr);
  EXPECT_TRUE(cache.erase_tag(hash_at(1, 0x203)));
  EXPECT_EQ(cache.find(7, hash_at(1, 0x103)), nullptr);
  cache.put(item(7, 71), hash_at(1, 0x103), &gone);
  EXPECT_TRUE(cache.erase(7, hash_at(1, 0x103)));
  EXPECT_FALSE(cache.erase_tag(hash_at(1, 0x103)));
  EXPECT_EQ(cache.items(), 0u);
}

TEST(NicCache, SlotsTakeWhatFits) {
  const NicCache cache(small(2, 4));
  EXPECT_TRUE(cache.accepts(64));
  EXPECT_FALSE(cache.accepts(65));
}

// 4 rows of 2 ways with 64 bytes each: 32 blocks of 16.
Geometry pooled() {
  Geometry geometry = small(2, 4);
  geometry.storage = Storage::kBlocks;
  geometry.block_bytes = 16;
  return geometry;
}

TEST(BlockPool, ItemsTakeWholeBlocksAndGiveThemBack) {
  NicCache cache(pooled());
  std::vector<Item> gone;
  EXPECT_EQ(cache.pool_blocks(), 32u);
  EXPECT_TRUE(cache.accepts(32));  // a sixteenth of the pool
  EXPECT_FALSE(cache.accepts(33));
  cache.put(item(1, 10, 17), hash_at(0, 1), &gone);
  EXPECT_EQ(cache.used_blocks(), 2u);
  cache.put(item(1, 11, 1), hash_at(0, 1), &gone);
  EXPECT_EQ(cache.used_blocks(), 1u);
  cache.put(item(2, 20, 32), hash_at(0, 2), &gone);
  EXPECT_EQ(cache.used_blocks(), 3u);
  EXPECT_TRUE(cache.erase(2, hash_at(0, 2)));
  EXPECT_EQ(cache.used_blocks(), 1u);
  EXPECT_TRUE(gone.empty());
}

TEST(BlockPool, BlocksAreFreedRowByRow) {
  Geometry geometry = pooled();
  geometry.slot_bytes = 8;  // 4 blocks for 8 entries
  NicCache cache(geometry);
  std::vector<Item> gone;
  for (uint32_t row = 0; row < 4; ++row) cache.put(item(row, 0), hash_at(row, 1), &gone);
  EXPECT_EQ(cache.used_blocks(), 4u);
  cache.put(item(10, 0), hash_at(3, 2), &gone);  // the hand is at row 0
  cache.put(item(11, 0), hash_at(3, 3), &gone);  // row 3 is full: its own victim is evicted
  cache.put(item(12, 0), hash_at(0, 4), &gone);  // the hand is at row 1
  ASSERT_EQ(gone.size(), 3u);
  EXPECT_EQ(gone[0].key, 0u);
  EXPECT_EQ(gone[1].key, 3u);
  EXPECT_EQ(gone[2].key, 1u);
  EXPECT_EQ(cache.counters().room_evictions, 2u);
  EXPECT_EQ(cache.used_blocks(), 4u);
}

// Random operations beside a map of all that was stored: whatever the shape, a hit is the key's
// last value, an item is in the cache or among those that went, and bounds hold.
void check_against_map(const Geometry& geometry, uint64_t seed) {
  NicCache cache(geometry);
  std::map<uint32_t, uint32_t> there;  // key to value, of what must be in the cache
  bench::Random random(seed);
  const auto hash_of = [&](uint32_t key) {
    return static_cast<uint32_t>(bench::mix(seed, key, 0) >> 32);
  };
  for (uint32_t step = 1; step <= 4000; ++step) {
    const auto key = static_cast<uint32_t>(random.next() % 60);
    const uint64_t kind = random.next() % 8;
    std::vector<Item> gone;
    if (kind < 4) {
      const Item* found = cache.find(key, hash_of(key));
      ASSERT_EQ(found != nullptr, there.contains(key)) << step;
      if (found != nullptr) {
        ASSERT_EQ(found->value, there[key]) << step;
      }
    } else if (kind < 7) {
      const auto bytes = static_cast<uint32_t>(1 + random.next() % geometry.slot_bytes);
      if (!cache.accepts(bytes)) continue;
      cache.put(item(key, step, bytes), hash_of(key), &gone);
      for (const Item& old : gone) {
        ASSERT_NE(old.key, key);
        ASSERT_EQ(there.erase(old.key), 1u);
      }
      there[key] = step;
    } else {
      ASSERT_EQ(cache.erase(key, hash_of(key)), there.erase(key) == 1);
    }
    ASSERT_EQ(cache.items(), there.size());
    ASSERT_LE(cache.items(), geometry.entries());
    ASSERT_LE(cache.used_blocks(), cache.pool_blocks());
  }
}

TEST(NicCacheProperty, HoldsInEveryShape) {
  for (const auto replacement : {Replacement::kFifo, Replacement::kLru, Replacement::kLfu,
                                 Replacement::kTreePlru, Replacement::kBitPlru, Replacement::kSieve,
                                 Replacement::kS3Fifo, Replacement::kTwoGenerations}) {
    for (const uint32_t tag_bits : {0u, 1u, 3u, 17u}) {
      for (const uint32_t ways : {1u, 4u, 8u}) {
        for (const Storage storage : {Storage::kSlots, Storage::kBlocks}) {
          Geometry geometry = small(ways, tag_bits);
          geometry.replacement = replacement;
          geometry.storage = storage;
          geometry.block_bytes = 16;
          if (geometry.fault() != nullptr) {
            ASSERT_TRUE(is_queued(replacement) && storage == Storage::kBlocks);
            continue;
          }
          SCOPED_TRACE(std::string(name(replacement)) + ", tags of " + std::to_string(tag_bits) +
                       " bits, ways " + std::to_string(ways));
          check_against_map(geometry, 17 + tag_bits * ways);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace warpcache::nic
