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
}

// Ten entries: one for new keys. While the cache fills, B to J go to main at once.
TEST(Chained, S3FifoByHand) {
  EXPECT_EQ(after("s3fifo", 10, "ABCDEFGHIJK"), "BCDEFGHIJK");
  EXPECT_EQ(after("s3fifo", 10, "ABCDEFGHIJaK"), "BCDEFGHIJK") << "once is not enough";
  EXPECT_EQ(after("s3fifo", 10, "ABCDEFGHIJaaK"), "ACDEFGHIJK");
  EXPECT_EQ(after("s3fifo", 10, "ABCDEFGHIJKALM"), "ACDEFGHIJM") << "A returns as a ghost";
  // Main is empty: A, evicted first, returns to main, or is forgotten since main holds nothing.
  EXPECT_EQ(after("s3fifo-empty-main", 10, "ABCDEFGHIJKALMNOPQRSTUV"), "ANOPQRSTUV");
  EXPECT_EQ(after("s3fifo-few-ghosts", 10, "ABCDEFGHIJKALMNOPQRSTUV"), "MNOPQRSTUV");
}

// A and B fill the hot part. C is cold and leaves first; it returns while it is remembered, so that
// A, used longest ago, becomes cold and is next.
TEST(Chained, LirsByHand) {
  EXPECT_EQ(after("lirs", 3, "ABCD"), "ABD");
  EXPECT_EQ(after("lirs", 3, "ABCDC"), "ABC");
  EXPECT_EQ(after("lirs", 3, "ABCDCE"), "BCE");
  EXPECT_EQ(after("lirs", 3, "ABCaDC"), "ABC");
  EXPECT_EQ(after("lirs", 3, "ABCaDCE"), "ACE") << "B is the one used longest ago";
}

// A window of one. J and K come once, as A, the main part's oldest, did: they do not get in. K does
// when it has been asked for twice.
TEST(Chained, TinyLfuByHand) {
  EXPECT_EQ(after("w-tinylfu", 10, "ABCDEFGHIJK"), "ABCDEFGHIK");
  EXPECT_EQ(after("w-tinylfu", 10, "ABCDEFGHIJKL"), "ABCDEFGHIL");
  EXPECT_EQ(after("w-tinylfu", 10, "ABCDEFGHIJKkL"), "BCDEFGHIKL");
  EXPECT_EQ(after("w-tinylfu", 10, "ABCDEFGHIJKkaL"), "ACDEFGHIKL") << "A is protected";
}

// Of values of 10, 50 and 50 bytes the second has the fewest uses a byte; used often enough it
// stays.
TEST(Chained, GdsfByHand) {
  const auto kept = [](uint32_t uses_of_b) {
    const std::unique_ptr<Cache> cache = cache_of("chained:gdsf", 100, {true, 0});
    cache->set(letter_key('A'), {1, 10, 0, 0});
    cache->set(letter_key('B'), {1, 50, 0, 0});
    for (uint32_t i = 0; i < uses_of_b; ++i) EXPECT_TRUE(holds(cache.get(), letter_key('B')));
    cache->set(letter_key('C'), {1, 50, 0, 0});
    std::string stored;
    for (const char letter : {'A', 'B', 'C'}) {
      if (holds(cache.get(), letter_key(letter))) stored += letter;
    }
    return stored;
  };
  EXPECT_EQ(kept(0), "AC");
  EXPECT_EQ(kept(3), "AC");
  EXPECT_EQ(kept(5), "BC");
}

// What a policy hits of a stream, by bytes or by entries.
uint64_t hits_of(const std::string& policy, const Workload& workload, uint64_t capacity,
                 const Costs& costs) {
  std::string why;
  const std::unique_ptr<Cache> cache = cache_of("chained:" + policy, capacity, costs);
  const Counts counts = simulate(make_trace(workload, &why).get(), cache.get(), {});
  EXPECT_EQ(counts.wrong, 0u);
  return counts.hits;
}

// Hot keys beside one-hit wonders: whoever tells them apart hits more than FIFO; who regards sizes
// hits more objects.
TEST(Chained, PoliciesOnAStream) {
  Workload workload;
  workload.keys = "zipf:1.0";
  workload.key_count = 5000;
  workload.requests = 60'000;
  workload.one_hits = 0.3;
  workload.sizes = "steps:16:50=1,5000=1";
  const Costs bytes = {true, 0};
  const uint64_t fifo = hits_of("fifo", workload, 300, {});
  for (const char* policy : {"s3fifo", "lirs", "w-tinylfu"}) {
    EXPECT_GT(hits_of(policy, workload, 300, {}), fifo * 11 / 10) << policy;
  }
  const uint64_t by_bytes = hits_of("s3fifo", workload, 700'000, bytes);
  for (const char* policy : {"gdsf", "lhd"}) {
    EXPECT_GT(hits_of(policy, workload, 700'000, bytes), by_bytes) << policy;
  }
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

// Beyond the store's rules: a key that returns after its eviction stays through the next flood.
TEST(TwoGenerations, GhostsReturn) {
  for (const uint32_t ghosts : {0u, 90u}) {
    Thresholds thresholds;
    thresholds.ghost_percent = ghosts;
    const uint64_t capacity = TwoGenerations::kSegments * 4;
    TwoGenerations cache(capacity, {}, thresholds);
    uint64_t other = 1000;
    const auto flood = [&](uint64_t count) {
      for (uint64_t i = 0; i < count; ++i) set(&cache, make_key(1, other++));
    };
    set(&cache, make_key(1, 5));
    flood(capacity + capacity / 2);
    EXPECT_FALSE(holds(&cache, make_key(1, 5)));
    set(&cache, make_key(1, 5));
    flood(2 * capacity);
    EXPECT_EQ(holds(&cache, make_key(1, 5)), ghosts > 0) << ghosts;
  }
}

// An access is enough for the small one of two that were used once.
TEST(TwoGenerations, LargeItemsNeedMoreAccesses) {
  for (const uint32_t by_size : {0u, 2u}) {
    Thresholds thresholds;
    thresholds.by_size = by_size;
    TwoGenerations cache(uint64_t{4} << 20, {true, 0}, thresholds);
    const auto put = [&](uint64_t id, uint32_t bytes) {
      cache.set(make_key(1, id), {1, bytes, 0, 0});
      return make_key(1, id);
    };
    const Key small = put(1, 100);
    const Key large = put(2, 1600);
    EXPECT_TRUE(holds(&cache, small));
    EXPECT_TRUE(holds(&cache, large));
    for (uint64_t id = 1000; id < 60'000; ++id) put(id, 200);
    EXPECT_TRUE(holds(&cache, small)) << by_size;
    EXPECT_EQ(holds(&cache, large), by_size == 0) << by_size;
  }
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
