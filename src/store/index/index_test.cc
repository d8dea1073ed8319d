// SPDX-License-Identifier: Apache-2.0
#include "store/index/index.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

TEST(Set, MatchesTagsOneByOne) {
  Set set = {};
  EXPECT_EQ(match_tag(set, 0), 0xffffu);
  for (uint32_t way = 0; way < kWays; ++way)
    set.set_tag(way, static_cast<uint16_t>(0x8001 + way % 5));
  for (uint32_t tag = 0; tag < 5; ++tag) {
    uint32_t expected = 0;
    for (uint32_t way = 0; way < kWays; ++way) expected |= way % 5 == tag ? 1u << way : 0;
    EXPECT_EQ(match_tag(set, static_cast<uint16_t>(0x8001 + tag)), expected);
  }
  EXPECT_EQ(match_tag(set, 0x0001), 0u);
}

TEST(Set, CountersStandAlone) {
  Set set = {};
  for (uint32_t way = 0; way < kWays; ++way) set.set_counter(way, way % 4);
  for (uint32_t way = 0; way < kWays; ++way) EXPECT_EQ(set.counter(way), way % 4);
  set.set_counter(5, 3);
  EXPECT_EQ(set.counter(4), 0u);
  EXPECT_EQ(set.counter(5), 3u);
  EXPECT_EQ(set.counter(6), 2u);
}

// Ghosts that a set does not mistake for each other.
constexpr uint64_t kGhosts[] = {0x0101, 0x0202, 0x0303, 0x0404, 0x0505, 0x0606,
                                0x0707, 0x0808, 0x0909, 0x0a0a, 0x0b0b, 0x0c0c};

TEST(Set, RemembersTheLastGhosts) {
  for (uint32_t keep = 1; keep <= kGhostsMax; ++keep) {
    Set set = {};
    for (const uint64_t ghost : kGhosts) set.add_ghost(ghost, keep);
    const size_t forgotten = std::size(kGhosts) - keep;
    for (size_t i = 0; i < std::size(kGhosts); ++i) {
      EXPECT_EQ(set.take_ghost(kGhosts[i]), i < forgotten ? Remembered::kNot : Remembered::kYoung)
          << keep << " " << i;
    }
    for (const uint64_t ghost : kGhosts) EXPECT_EQ(set.take_ghost(ghost), Remembered::kNot);
    EXPECT_EQ(set.ghosts[0] | set.ghosts[1], 0u);
  }
}

TEST(Set, KeepsFewerGhostsFromNowOn) {
  Set set = {};
  for (const uint64_t ghost : kGhosts) set.add_ghost(ghost, kGhostsMax);
  set.add_ghost(0x0d0d, 2);
  EXPECT_EQ(set.take_ghost(0x0d0d), Remembered::kYoung);
  EXPECT_EQ(set.take_ghost(0x0c0c), Remembered::kYoung);
  EXPECT_EQ(set.ghosts[0] | set.ghosts[1], 0u);
}

TEST(Set, TakesTheGhostThatIsMeant) {
  Set set = {};
  for (const uint64_t ghost : {0x0001u, 0x4000u, 0x7fffu, 0x0100u, 0x3fffu})
    set.add_ghost(ghost, kGhostsMax);
  EXPECT_EQ(set.take_ghost(0x4001), Remembered::kNot);
  EXPECT_EQ(set.take_ghost(0x0101), Remembered::kNot);
  EXPECT_EQ(set.take_ghost(0x4000), Remembered::kYoung);
  EXPECT_EQ(set.take_ghost(0x4000), Remembered::kNot);
  for (const uint64_t ghost : {0x0001u, 0x7fffu, 0x0100u, 0x3fffu})
    EXPECT_EQ(set.take_ghost(ghost), Remembered::kYoung);
  EXPECT_NE(ghost_of(0), 0u);
  EXPECT_EQ(ghost_of(~uint64_t{0}) & kGhostOfMain, 0u);
}

TEST(Set, KnowsWhichGenerationAGhostWasIn) {
  Set set = {};
  for (size_t i = 0; i < kGhostsMax; ++i)
    set.add_ghost(kGhosts[i] | (i % 2 != 0 ? kGhostOfMain : 0), kGhostsMax);
  for (size_t i = 0; i < kGhostsMax; ++i) {
    EXPECT_EQ(set.take_ghost(kGhosts[i]), i % 2 != 0 ? Remembered::kMain : Remembered::kYoung);
  }
}

TEST(Slot, KeepsOffsetHashAndSize) {
  const uint64_t hash = 0xfedcba9876543210;
  const uint64_t offset = (uint64_t{1} << 44) - 16;
  const Slot slot = make_slot(offset, 130, hash);
  EXPECT_EQ(slot_offset(slot), offset);
  EXPECT_EQ(slot_lines(slot), 3u);
  EXPECT_TRUE(slot_fits(slot, hash));
  EXPECT_FALSE(slot_fits(slot, hash ^ 0x100));
  EXPECT_EQ(slot_lines(make_slot(16, 1 << 20, hash)), 255u);
}

TEST(Tag, IsNeverEmptyAndKeepsTheHome) {
  EXPECT_EQ(tag_of(0), 1);
  EXPECT_EQ(home_of_tag(tag_of(0)), 0u);
  const uint64_t high = uint64_t{1} << 55;
  EXPECT_EQ(home_of(high), 1u);
  EXPECT_EQ(home_of_tag(tag_of(high)), 1u);
}

TEST(PairOf, FollowsLinearHashing) {
  EXPECT_EQ(pair_of(0x1ff, 256), 0xffu);
  EXPECT_EQ(pair_of(0x100, 257), 0x100u);
  EXPECT_EQ(pair_of(0x101, 257), 0x001u);
  EXPECT_EQ(pair_of(0xffffffffffffffff, 0xffffffff), 0x7fffffffu);
  EXPECT_EQ(pair_of(0xfffffffe, 0xffffffff), 0xfffffffeu);
  for (uint32_t count = 1; count <= 70; ++count) {
    uint64_t level = 1;
    while (2 * level <= count) level *= 2;
    for (uint64_t hash = 0; hash < 300; ++hash) {
      const uint64_t fine = hash % (2 * level);
      EXPECT_EQ(pair_of(hash, count), fine < count ? fine : hash % level) << hash << ", " << count;
    }
  }
}

// Keys that all belong to one pair of an index of 2^12 pairs, and of any smaller one.
std::vector<std::string> keys_of_one_pair(const StoreRef& ref, size_t count) {
  std::vector<std::string> keys;
  for (uint64_t i = 0; keys.size() < count; ++i) {
    const std::string key = "k" + std::to_string(i);
    if ((ref.hash(bytes_of(key)) & 0xfff) == 77) keys.push_back(key);
  }
  return keys;
}

TEST(Overflow, TakesKeysAndComesBack) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker worker(store.get());
  const std::vector<std::string> keys = keys_of_one_pair(worker.ref(), 120);
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(worker.set(keys[i], keys[i]), Status::kOk);
    std::string value;
    for (size_t j = 0; j <= i; ++j) {
      ASSERT_TRUE(worker.get(keys[j], &value));
      ASSERT_EQ(value, keys[j]);
    }
  }
  EXPECT_EQ(store->stats().get(StoreCounter::kOverflowSets), (120 - 32 + 15) / 16u);
  EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
  for (size_t i = 0; i < keys.size(); i += 2) ASSERT_TRUE(worker.erase(keys[i]));
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(worker.get(keys[i]), i % 2 == 1);
  EXPECT_EQ(store->stats().get(StoreCounter::kOverflowSets), (60 - 32 + 15) / 16u);
  for (size_t i = 1; i < keys.size(); i += 2) ASSERT_TRUE(worker.erase(keys[i]));
  EXPECT_EQ(store->stats().get(StoreCounter::kOverflowSets), 0u);
  EXPECT_EQ(store->stats().get(StoreCounter::kItems), 0u);
}

TEST(Overflow, BeyondItTheLeastUsedKeyGoes) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  const std::vector<std::string> keys = keys_of_one_pair(worker.ref(), 400);
  for (const std::string& key : keys) ASSERT_EQ(worker.set(key, key), Status::kOk);
  const StoreStats stats = store->stats();
  EXPECT_GT(stats.get(StoreCounter::kEvictedInPair), 0u);
  EXPECT_EQ(stats.get(StoreCounter::kItems) + stats.get(StoreCounter::kEvicted), 400u);
  uint64_t found = 0;
  for (const std::string& key : keys) found += worker.get(key) ? 1u : 0u;
  EXPECT_EQ(found, stats.get(StoreCounter::kItems));
}

// Splits of a pair with overflow, level by level, keep every key.
TEST(Split, KeepsKeysOfACrowdedPair) {
  const auto store = make_store(quiet_config(64 * kMiB));
  Worker worker(store.get());
  const std::vector<std::string> keys = keys_of_one_pair(worker.ref(), 100);
  for (const std::string& key : keys) ASSERT_EQ(worker.set(key, key), Status::kOk);
  const uint64_t crowded = store->stats().get(StoreCounter::kOverflowSets);
  EXPECT_GT(crowded, 0u);
  for (uint64_t i = 0; i < 300'000; ++i) {
    ASSERT_EQ(worker.set(key_name(i), "x"), Status::kOk);
    if (i % 5000 != 0) continue;
    for (const std::string& key : keys) ASSERT_TRUE(worker.get(key)) << i;
  }
  // 2^12 pairs and more: by now the hundred keys are spread over several pairs.
  EXPECT_GT(store->stats().index_pairs, 16'000u);
  EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
  std::set<std::string> walked;
  for (uint64_t cursor = 0; cursor != StoreOwner::kWalkEnd;) {
    const Status status = store->walk(cursor, [&](const WalkedItem& item) {
      walked.insert(std::string(reinterpret_cast<const char*>(item.key.data), item.key.size));
    });
    ASSERT_EQ(status, Status::kOk);
  }
  EXPECT_EQ(walked.size(), 300'100u);
}

// A split moves keys from overflow sets to those of the new pair, until all sets are taken.
TEST(Split, EvictsWhatFindsNoPlace) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  const uint64_t pairs = store->stats().index_pairs;
  ASSERT_EQ(pairs, 256u);
  // Pair 0 is split first, and all of its keys move; the other three pairs stay crowded.
  std::vector<std::string> moving;
  std::vector<std::string> staying;
  for (uint64_t i = 0; moving.size() < 50 || staying.size() < 500; ++i) {
    const std::string key = "m" + std::to_string(i);
    const uint64_t hash = worker.ref().hash(bytes_of(key));
    if (hash % (2 * pairs) == pairs && moving.size() < 50) moving.push_back(key);
    if (hash % pairs >= pairs - 3 && staying.size() < 500) staying.push_back(key);
  }
  for (const std::string& key : moving) ASSERT_EQ(worker.set(key, key), Status::kOk);
  for (const std::string& key : staying) ASSERT_EQ(worker.set(key, key), Status::kOk);
  ASSERT_EQ(store->stats().get(StoreCounter::kOverflowSets),
            (pairs / kBlockPairs + 1) * kBlockOverflowSets);
  uint64_t added = 0;
  while (store->stats().index_pairs == pairs)
    ASSERT_EQ(worker.set(key_name(added++), "x"), Status::kOk);
  uint64_t found = 0;
  for (const std::string& key : moving) found += worker.get(key) ? 1u : 0u;
  EXPECT_GE(found, kWays);
  EXPECT_LT(found, moving.size());
  const StoreStats stats = store->stats();
  EXPECT_EQ(stats.get(StoreCounter::kItems) + stats.get(StoreCounter::kEvicted), added + 550);
}

// Beyond the hash bits that slots keep, a split reads the items. An index that large takes
// gigabytes, so the test makes a Core without one.
TEST(Split, LooksAtItemsWhereSlotsKnowTooLittle) {
  alignas(64) uint8_t memory[4096] = {};
  Core core;
  core.arena = memory;
  core.seed = make_hash_seed(42);
  uint64_t moved = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    const std::string key = key_name(i);
    Item* item = reinterpret_cast<Item*>(memory + 1024);
    item->key_size = static_cast<uint8_t>(key.size());
    std::memcpy(item->key_data(), key.data(), key.size());
    const uint64_t hash = hash_key(core.seed, bytes_of(key));
    const Slot slot = make_slot(1024, 100, hash);
    for (uint32_t level = kSlotHashFirstBit; level < 32; ++level)
      ASSERT_EQ(detail::moves_at(core, slot, level), (hash >> level & 1) != 0) << level;
    moved += detail::moves_at(core, slot, kSlotHashFirstBit + kSlotHashBits) ? 1u : 0u;
  }
  EXPECT_GT(moved, 25u);
  EXPECT_LT(moved, 75u);
}

}  // namespace
}  // namespace warpcache::store
