// SPDX-License-Identifier: Apache-2.0
// What holds for every cache, whatever it evicts.
#include <gtest/gtest.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "hitrate/test_util.h"
#include "workload/random.h"

namespace warpcache::sim {
namespace {

constexpr uint64_t kCapacity = 4096;

std::vector<std::string> all_caches() {
  std::vector<std::string> names = {"hopscotch", "strided",         "cuckoo",
                                    "cuckoo:4",  "two-generations", "two-generations:50:10:1:1",
                                    "store"};
  for (const char* policy : {"lru", "fifo", "clock", "sieve", "s3fifo"}) {
    names.push_back(std::string("chained:") + policy);
    for (const char* ways : {"1", "3", "16", "64"}) {
      names.push_back(std::string("set:") + ways + ":" + policy);
    }
  }
  for (const char* policy :
       {"s3fifo-empty-main", "s3fifo-few-ghosts", "gdsf", "lirs", "w-tinylfu", "lhd", "farthest"}) {
    names.push_back(std::string("chained:") + policy);
  }
  for (const char* name : {"two-generations:20:25:3:1:90:4", "store:128"}) names.emplace_back(name);
  for (const char* name : {"set:16:random", "set:16:duel", "set:1:duel", "set:16:two-generations",
                           "set:1:two-generations"})
    names.emplace_back(name);
  return names;
}

class EveryCache : public testing::TestWithParam<std::string> {
 protected:
  static bool is_store() { return GetParam().starts_with("store"); }
  std::unique_ptr<Cache> make() const {
    if (is_store()) return cache_of(GetParam(), 2 << 20, {true, 0});
    return cache_of(GetParam(), kCapacity);
  }
};

// Drives random operations against a map of what was set last.
void drive(Cache* cache, uint64_t seed, uint64_t keys, uint64_t hash_mask) {
  bench::Random random(seed);
  std::unordered_map<uint64_t, uint32_t> last;
  for (uint32_t i = 1; i <= 30'000; ++i) {
    Key key = make_key(seed, random.next() % keys);
    key.hash &= hash_mask;
    const uint64_t what = random.next() % 100;
    uint32_t value = 0;
    if (what < 50) {
      const bool hit = cache->get(key, &value);
      ASSERT_TRUE(!hit || value == last.at(key.id));
    } else if (what < 97) {
      cache->set(key, {i, 10, 20, 0});
      last[key.id] = i;
      ASSERT_TRUE(cache->get(key, &value));
      ASSERT_EQ(value, i);
    } else {
      const bool there = cache->erase(key);
      ASSERT_TRUE(!there || last.contains(key.id));
      last.erase(key.id);
      ASSERT_FALSE(cache->get(key, nullptr));
    }
    ASSERT_LE(cache->items(), std::min<uint64_t>(kCapacity * 3, last.size()));
  }
}

TEST_P(EveryCache, AHitReturnsTheLastValue) {
  for (const uint64_t keys : {100u, 5000u, 40'000u}) drive(make().get(), keys, keys, ~uint64_t{0});
}

// Whatever part of the hash decides, keys that share it stay different keys.
TEST_P(EveryCache, CollisionsNeverReturnAWrongKey) {
  drive(make().get(), 1, 1000, 0xff);                  // the same tag, 256 hashes
  drive(make().get(), 2, 300, 0);                      // one hash
  drive(make().get(), 3, 5000, 0x00ffffffffffffff00);  // few sets' lowest bits
}

TEST_P(EveryCache, HoldsNoMoreThanItsCapacity) {
  if (is_store()) GTEST_SKIP() << "limited by bytes, see RealStore";
  const std::unique_ptr<Cache> cache = make();
  uint64_t most = 0;
  for (uint64_t id = 0; id < 3 * kCapacity; ++id) {
    set(cache.get(), make_key(9, id));
    most = std::max(most, cache->items());
  }
  EXPECT_LE(most, kCapacity);
  EXPECT_GT(most, kCapacity * 6 / 10);
  uint64_t held = 0;
  for (uint64_t id = 0; id < 3 * kCapacity; ++id) held += holds(cache.get(), make_key(9, id));
  EXPECT_EQ(held, cache->items());
}

TEST_P(EveryCache, SameSeedSameHits) {
  Workload workload;
  workload.keys = "zipf:0.9";
  workload.key_count = 10'000;
  workload.requests = 30'000;
  workload.mix = {0.1, 0, 0.02};
  const auto run = [&](uint64_t seed) {
    std::string why;
    workload.seed = seed;
    const Counts counts = simulate(make_trace(workload, &why).get(), make().get(), {});
    EXPECT_EQ(counts.wrong, 0u);
    return counts.hits;
  };
  const uint64_t hits = run(1);
  EXPECT_EQ(hits, run(1));
  EXPECT_NE(hits, run(2));
}

INSTANTIATE_TEST_SUITE_P(All, EveryCache, testing::ValuesIn(all_caches()), [](const auto& one) {
  std::string name = one.param;
  for (char& c : name) c = c == ':' || c == '-' ? '_' : c;
  return name;
});

TEST(MakeCache, RefusesWhatCannotBe) {
  for (const char* name :
       {"", "set", "set:0", "set:65", "set:16:mru", "set:16:lru:1", "chained:random", "cuckoo:3",
        "hop", "two-generations:101", "two-generations:1:2:3:4:5:6:7"}) {
    std::string why;
    EXPECT_EQ(make_cache(name, {kCapacity, {}}, 1, &why), nullptr) << name;
    EXPECT_NE(why.find("set:WAYS"), std::string::npos);
  }
  std::string why;
  EXPECT_EQ(make_cache("chained", {0, {}}, 1, &why), nullptr);
  EXPECT_EQ(make_cache("set:16", {kCapacity, {true, 10}}, 1, &why), nullptr);
  EXPECT_EQ(why, "set:16 counts entries: use --capacity");
  EXPECT_EQ(make_cache("store", {kCapacity, {}}, 1, &why), nullptr);
  EXPECT_EQ(why, "store counts bytes: use --memory");
  EXPECT_EQ(make_cache("store:96", {kCapacity * 1024, {true, 0}}, 1, &why), nullptr);
  EXPECT_NE(make_cache("store:128", {kCapacity * 1024, {true, 0}}, 1, &why), nullptr);
  EXPECT_EQ(make_cache("set:16", {15, {}}, 1, &why), nullptr);
  EXPECT_EQ(why, "set:16 needs 16 entries, one set");
}

}  // namespace
}  // namespace warpcache::sim
