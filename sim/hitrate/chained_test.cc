// SPDX-License-Identifier: Apache-2.0
// Policies over all items, the store's model, the store itself and exact LRU, by small cases.
#include <gtest/gtest.h>

#include <string>

#include "hitrate/stack_distance.h"
#include "hitrate/test_util.h"
#include "hitrate/two_generations.h"

namespace warpcache::sim {
namespace {

Key letter_key(char letter) { return make_key(1, static_cast<uint64_t>(letter | 0x20)); }

// Capitals are set, small letters got; the result is what is stored then.
std::string after(const std::string& policy, uint64_t capacity, const std::string& script) {
  const std::unique_ptr<Cache> cache = cache_of("chained:" + policy, capacity);
  for (const char letter : script) {
    if (letter < 'a') {
      set(cache.get(), letter_key(letter));
    } else {
      EXPECT_TRUE(holds(cache.get(), letter_key(letter))) << script << " at " << letter;
    }
  }
  std::string stored;
  for (char letter = 'A'; letter <= 'Z'; ++letter) {
    if (holds(cache.get(), letter_key(letter))) stored += letter;
  }
  return stored;
}

TEST(Chained, PoliciesByHand) {
  EXPECT_EQ(after("lru", 3, "ABCabD"), "ABD");
  EXPECT_EQ(after("fifo", 3, "ABCabD"), "BCD");
  EXPECT_EQ(after("clock", 3, "ABCaD"), "ACD");
  EXPECT_EQ(after("clock", 3, "ABCaDE"), "ADE") << "A went round to the newest place";
  EXPECT_EQ(after("clock", 3, "ABCaDEF"), "DEF");
  EXPECT_EQ(after("sieve", 3, "ABCaD"), "ACD");
  EXPECT_EQ(after("sieve", 3, "ABCaDEF"), "AEF");
  EXPECT_EQ(after("sieve", 3, "ABCaDEFG"), "AFG") << "the hand has passed A for good until it is "
                                                     "at the newest";
  EXPECT_EQ(after("s3fifo", 5, "ABCDEaaFGHIJKL"), "AIJKL");
  EXPECT_EQ(after("s3fifo", 5, "ABCDEaFGHIJ"), "FGHIJ");
}

TEST(Chained, BytesAreTheLimitWhereTheyAreCounted) {
  const Costs costs = {true, 10};
  const std::unique_ptr<Cache> cache = cache_of("chained:lru", 100, costs);
  const auto put = [&](char letter, uint32_t value_size) {
    cache->set(letter_key(letter), {1, value_size, 5, 0});
  };
  put('A', 35);  // 50
  put('B', 35);  // 100
  EXPECT_EQ(cache->items(), 2u);
  put('C', 0);  // 15: A goes
  EXPECT_FALSE(holds(cache.get(), letter_key('A')));
  EXPECT_EQ(cache->items(), 2u);
  put('C', 60);  // grows to 75: B goes
  EXPECT_FALSE(holds(cache.get(), letter_key('B')));
  put('C', 86);  // 101: never fits
  EXPECT_EQ(cache->items(), 0u);
}

TEST(TwoGenerations, WhatWasUsedOutlivesAFlood) {
  TwoGenerations cache(TwoGenerations::kSegments * 4, {}, {});
  for (uint64_t id = 0; id < 20; ++id) set(&cache, make_key(1, id));
  for (uint64_t id = 0; id < 10; ++id) EXPECT_TRUE(holds(&cache, make_key(1, id)));
  for (uint64_t id = 1000; id < 20'000; ++id) set(&cache, make_key(1, id));
  for (uint64_t id = 0; id < 20; ++id) {
    EXPECT_EQ(holds(&cache, make_key(1, id)), id < 10) << id;
  }
  EXPECT_LE(cache.items(), TwoGenerations::kSegments * 4);
  EXPECT_GT(cache.items(), TwoGenerations::kSegments * 4 * 99 / 100);
}

TEST(TwoGenerations, DeadCopiesAreCompactedAway) {
  TwoGenerations cache(TwoGenerations::kSegments * 4, {}, {});
  const uint64_t keys = TwoGenerations::kSegments * 2;  // half of it
  for (uint32_t round = 0; round < 20; ++round) {
    for (uint64_t id = 0; id < keys; ++id) set(&cache, make_key(1, id * 7919 % keys), round);
  }
  EXPECT_EQ(cache.items(), keys);
  uint32_t value = 0;
  for (uint64_t id = 0; id < keys; ++id) {
    ASSERT_TRUE(cache.get(make_key(1, id), &value)) << id;
    EXPECT_EQ(value, 19u);
  }
}

TEST(RealStore, StoresReplacesExpiresAndEvicts) {
  const std::unique_ptr<Cache> cache = cache_of("store", 2 << 20, {true, 0});
  const Key key = make_key(1, 5), brief = make_key(1, 6);
  cache->set(key, {7, 100, 20, 0});
  cache->set(key, {8, 50, 20, 0});
  cache->set(brief, {9, 50, 20, 10});
  uint32_t value = 0;
  ASSERT_TRUE(cache->get(key, &value));
  EXPECT_EQ(value, 8u);
  EXPECT_EQ(cache->items(), 2u);
  cache->set_clock(9);
  EXPECT_TRUE(holds(cache.get(), brief));
  cache->set_clock(10);
  EXPECT_FALSE(holds(cache.get(), brief));
  EXPECT_TRUE(cache->erase(key));
  EXPECT_FALSE(cache->erase(key));
  for (uint64_t id = 100; id < 30'000; ++id) cache->set(make_key(1, id), {1, 100, 20, 0});
  EXPECT_GT(cache->items(), 8000u);
  EXPECT_LT(cache->items() * (32 + 20 + 100), uint64_t{2} << 20);
}

TEST(Simulate, AMissIsFollowedByASetAndTimePasses) {
  Workload workload;
  workload.keys = "uniform";
  workload.key_count = 100;
  workload.requests = 20'480;
  std::string why;
  const std::unique_ptr<Cache> cache = cache_of("chained:lru", 1000);
  SimulateOptions options;
  Counts counts = simulate(make_trace(workload, &why).get(), cache.get(), options);
  EXPECT_EQ(counts.gets - counts.hits, 100u);
  options.ttl_s = 1;
  options.ttl_every = 2;
  options.requests_per_s = 2048;
  const std::unique_ptr<Cache> expiring = cache_of("chained:lru", 1000);
  counts = simulate(make_trace(workload, &why).get(), expiring.get(), options);
  // Each second of ten the fifty even keys are set again, and the odd ones but once.
  EXPECT_EQ(counts.gets - counts.hits, 50 * 10 + 50u);
  EXPECT_EQ(counts.wrong, 0u);
}

TEST(StackDistance, ByHand) {
  StackDistance distances(10);
  const auto access = [&](uint64_t key, Operation operation) {
    distances.add({key, 0, 0, operation}, true);
  };
  access(1, Operation::kSet);
  access(2, Operation::kSet);
  access(3, Operation::kSet);
  access(1, Operation::kGet);     // 2 and 3 since: hits from 3 entries on
  access(1, Operation::kGet);     // from 1 on
  access(9, Operation::kGet);     // never
  access(2, Operation::kDelete);  // leaves the stack
  access(3, Operation::kGet);     // 1 and 9 since
  EXPECT_EQ(distances.gets(), 4u);
  EXPECT_EQ(distances.hits(0), 0u);
  EXPECT_EQ(distances.hits(1), 1u);
  EXPECT_EQ(distances.hits(2), 1u);
  EXPECT_EQ(distances.hits(3), 3u);
  EXPECT_EQ(distances.hits(100), 3u);
}

}  // namespace
}  // namespace warpcache::sim
