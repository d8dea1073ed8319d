// SPDX-License-Identifier: Apache-2.0
// Set-associative caches, and every policy of eviction in sets, by small cases worked out by hand.
#include <gtest/gtest.h>

#include <string>

#include "hitrate/set_associative.h"
#include "hitrate/test_util.h"

namespace warpcache::sim {
namespace {

constexpr char kNames[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

// One set. Letters in capitals are set, in small ones are got; the result is what is stored then.
std::string in_set_after(const std::string& cache_name, uint32_t ways, const std::string& script) {
  const std::unique_ptr<Cache> cache =
      cache_of("set:" + std::to_string(ways) + ":" + cache_name, ways);
  const auto key = [](char letter) { return make_key(1, static_cast<uint64_t>(letter | 0x20)); };
  for (const char letter : script) {
    if (letter < 'a') {
      set(cache.get(), key(letter));
    } else {
      EXPECT_TRUE(holds(cache.get(), key(letter))) << script << " at " << letter;
    }
  }
  std::string stored;
  for (const char letter : std::string(kNames)) {
    if (holds(cache.get(), key(letter))) stored += letter;
  }
  return stored;
}

TEST(SetPolicies, LruEvictsTheLeastRecentlyUsed) {
  EXPECT_EQ(in_set_after("lru", 2, "ABaC"), "AC");
  EXPECT_EQ(in_set_after("lru", 2, "ABAC"), "AC");  // a set is a use
  EXPECT_EQ(in_set_after("lru", 3, "ABCabD"), "ABD");
  EXPECT_EQ(in_set_after("lru", 1, "ABC"), "C");
}

TEST(SetPolicies, FifoEvictsTheOldest) {
  EXPECT_EQ(in_set_after("fifo", 2, "ABaC"), "BC");
  EXPECT_EQ(in_set_after("fifo", 2, "ABAC"), "BC");
  EXPECT_EQ(in_set_after("fifo", 3, "ABCabcDE"), "CDE");
}

TEST(SetPolicies, ClockGivesASecondChanceOnce) {
  EXPECT_EQ(in_set_after("clock", 2, "ABaC"), "AC");   // spares A, takes B
  EXPECT_EQ(in_set_after("clock", 2, "ABaCD"), "CD");  // A has no second chance left
  EXPECT_EQ(in_set_after("clock", 3, "ABCabcD"),
            "BCD");  // all used: a round clears them, then the first
}

// A B C, the hand at A. A was used: spared in its place; B goes; then C, where the hand stands, and
// then D, though A is older.
TEST(SetPolicies, SieveKeepsItsPlace) {
  EXPECT_EQ(in_set_after("sieve", 3, "ABCaD"), "ACD");
  EXPECT_EQ(in_set_after("sieve", 3, "ABCaDE"), "ADE");
  EXPECT_EQ(in_set_after("sieve", 3, "ABCaDEF"), "AEF");
  EXPECT_EQ(in_set_after("sieve", 3, "ABCcD"), "BCD");  // unused ones leave as in FIFO
}

// Five ways: one for new keys, four ghosts. A is evicted first; as a ghost it returns to the main
// queue, where a row of new keys does not reach it.
TEST(SetPolicies, S3FifoRemembersGhosts) {
  EXPECT_EQ(in_set_after("s3fifo", 5, "ABCDEF"), "BCDEF");
  EXPECT_EQ(in_set_after("s3fifo", 5, "ABCDEFAGHIJKLM"), "AJKLM");
}

TEST(SetPolicies, S3FifoMovesWhatIsUsedTwice) {
  EXPECT_EQ(in_set_after("s3fifo", 5, "ABCDEaaFGHIJKL"), "AIJKL");
  EXPECT_EQ(in_set_after("s3fifo", 5, "ABCDEaFGHIJ"), "FGHIJ");  // once is not enough
  EXPECT_EQ(in_set_after("s3fifo", 1, "AaaB"), "B");
}

// Ten ways: two of them for new keys. One use is enough to stay, and is spent by one stay.
TEST(SetPolicies, TwoGenerationsKeepWhatIsUsed) {
  EXPECT_EQ(in_set_after("two-generations", 10, "ABCDEFGHIJKL"), "CDEFGHIJKL");
  EXPECT_EQ(in_set_after("two-generations", 10, "ABCDEFGHIJaKLMNOPQRST"), "ALMNOPQRST");
}

TEST(SetPolicies, RandomEvictsEachWay) {
  uint32_t evicted[4] = {};
  SetRandom policy(1, 4, 7);
  for (int i = 0; i < 4000; ++i) ++evicted[policy.victim(0)];
  for (const uint32_t count : evicted) EXPECT_NEAR(count, 1000, 150);
}

// A key of each set is used twice, then more new keys come than the set has ways, and so on: LRU
// has always lost it, SIEVE has not. Returns how often it was still there, in sets that lead for no
// policy.
template <typename Policy>
uint64_t kept_keys() {
  constexpr uint32_t kSets = 64, kWays = 4;
  SetAssociative<Policy> cache(kSets * kWays, kWays, 1);
  uint64_t kept = 0;
  uint64_t fresh = 1000;
  for (uint32_t round = 0; round < 100; ++round) {
    for (uint32_t set = 0; set < kSets; ++set) {
      const Key hot = key_at(set, set, kSets);
      kept += cache.get(hot, nullptr) && set % 32 > 1 ? 1u : 0u;
      for (int use = 0; use < 2; ++use) cache.set(hot, {1});
      for (uint32_t i = 0; i <= kWays; ++i) cache.set(key_at(++fresh, set, kSets), {1});
    }
  }
  return kept;
}

TEST(SetPolicies, DuelFollowsTheBetter) {
  EXPECT_EQ(kept_keys<SetLru>(), 0u);
  const uint64_t sieve = kept_keys<SetSieve>();
  EXPECT_GT(sieve, 60 * 50u);
  EXPECT_GT(kept_keys<SetDuel>(), sieve * 9 / 10);
}

TEST(SetAssociative, KeysOfOtherSetsDoNotCompete) {
  SetAssociative<SetLru> cache(8, 2, 1);
  for (uint32_t set = 0; set < 4; ++set) {
    for (uint32_t i = 0; i < 2; ++i) cache.set(key_at(set * 2 + i, set, 4, i << 8), {set * 2 + i});
  }
  EXPECT_EQ(cache.items(), 8u);
  cache.set(key_at(99, 3, 4, 9 << 8), {99});
  EXPECT_EQ(cache.items(), 8u);
  uint32_t value = 0;
  for (uint32_t id = 0; id < 6; ++id) {
    ASSERT_TRUE(cache.get(key_at(id, id / 2, 4, (id % 2) << 8), &value));
    EXPECT_EQ(value, id);
  }
  EXPECT_FALSE(cache.get(key_at(6, 3, 4), nullptr));
}

TEST(SetAssociative, SameHashIsNotTheSameKey) {
  SetAssociative<SetLru> cache(4, 4, 1);
  const Key one = {1, 42}, two = {2, 42};
  cache.set(one, {10});
  EXPECT_FALSE(cache.get(two, nullptr));
  cache.set(two, {20});
  uint32_t value = 0;
  EXPECT_TRUE(cache.get(one, &value));
  EXPECT_EQ(value, 10u);
  EXPECT_TRUE(cache.erase(one));
  EXPECT_TRUE(cache.get(two, &value));
  EXPECT_EQ(value, 20u);
}

}  // namespace
}  // namespace warpcache::sim
