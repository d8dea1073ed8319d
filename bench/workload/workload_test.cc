// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "workload/item_maker.h"
#include "workload/random.h"
#include "workload/sizes.h"
#include "workload/zipf.h"

namespace warpcache::bench {
namespace {

TEST(Zipf, ProbabilitiesFollowTheLaw) {
  const Zipf zipf(1000, 0.99);
  double sum = 0;
  for (uint32_t rank = 0; rank < 1000; ++rank) sum += zipf.probability(rank);
  EXPECT_NEAR(sum, 1.0, 1e-9);
  EXPECT_NEAR(zipf.probability(0) / zipf.probability(9), std::pow(10.0, 0.99), 1e-6);
}

TEST(Zipf, EachPointFallsInItsRanksShare) {
  for (const uint32_t count : {1u, 2u, 7u, 1000u}) {
    for (const double theta : {0.0, 0.99, 2.0}) {
      const Zipf zipf(count, theta);
      double below = 0;
      for (uint32_t rank = 0; rank < count; ++rank) {
        const double share = zipf.probability(rank);
        EXPECT_EQ(zipf.rank_at(below + share * 0.01), rank) << count << " " << theta;
        EXPECT_EQ(zipf.rank_at(below + share * 0.99), rank) << count << " " << theta;
        below += share;
      }
    }
  }
}

TEST(Random, SameSeedSameNumbersWithinBounds) {
  Random one(7), two(7), other(8);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double number = one.next_unit();
    EXPECT_EQ(number, two.next_unit());
    ASSERT_GT(number, 0.0);
    ASSERT_LT(number, 1.0);
    sum += number;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
  EXPECT_NE(one.next(), other.next());
  EXPECT_GT(unit(0), 0.0);
  EXPECT_LT(unit(~uint64_t{0}), 1.0);
}

TEST(EtcSizes, KeysHaveTheDistributionsQuantiles) {
  EXPECT_NEAR(etc_key_size(std::exp(-1.0)), 30.7984, 1e-9);  // mu is the quantile of 1/e
  const auto reduced = [](double u) { return std::pow(-std::log(u), -0.078688) - 1.0; };
  for (const double u : {0.01, 0.5, 0.99}) {
    EXPECT_NEAR((etc_key_size(u) - 30.7984) * 0.078688 / 8.20449, reduced(u), 1e-9);
  }
}

TEST(EtcSizes, ValuesFollowTheTableThenThePareto) {
  EXPECT_EQ(etc_value_size(0.001), 0.0);
  EXPECT_EQ(etc_value_size(0.1), 2.0);  // 0, 1: 0.58%; 2: 17.8%
  EXPECT_EQ(etc_value_size(0.44), 14.0);
  EXPECT_NEAR(etc_value_size(0.44156), 15.0, 0.01);  // the table holds 44.155%
  // The tail above 15 keeps the Pareto distribution's own ratios: P(> 1000) / P(> 100).
  const auto tail = [](double x) { return std::pow(1 + 0.348238 * x / 214.476, -1 / 0.348238); };
  const auto above = [&](double x) { return (1 - 0.44155) * tail(x) / tail(15); };
  EXPECT_NEAR(etc_value_size(1 - above(100)), 100.0, 1e-6);
  EXPECT_NEAR(etc_value_size(1 - above(10000)), 10000.0, 1e-3);
}

TEST(Sizes, EtcSizesAreTheKeysOwnAndInBounds) {
  Sizes sizes;
  std::string why;
  ASSERT_TRUE(Sizes::parse("etc", &sizes, &why));
  double key_sum = 0, value_sum = 0;
  constexpr uint32_t kCount = 200000;
  for (uint32_t id = 0; id < kCount; ++id) {
    const ItemSizes one = sizes.of(1, id);
    ASSERT_GE(one.key, kKeySizeMin);
    ASSERT_LE(one.key, kKeySizeMax);
    ASSERT_LE(one.value, kValueSizeMax);
    key_sum += one.key;
    value_sum += one.value;
  }
  // Means of the distributions: 36.3 for keys; for values 5.0 * 0.44155 of the table and the tail.
  EXPECT_NEAR(key_sum / kCount, 36.3, 0.5);
  const double tail_mean = 15 + (214.476 + 0.348238 * 15) / (1 - 0.348238);
  const double table_mean = 2.32;
  EXPECT_NEAR(value_sum / kCount, table_mean + (1 - 0.44155) * tail_mean, 8.0);
  EXPECT_EQ(sizes.of(1, 77).value, sizes.of(1, 77).value);
}

TEST(Sizes, StepsHaveTheirWeights) {
  Sizes sizes;
  std::string why;
  ASSERT_TRUE(Sizes::parse("steps:16:512=1,65536=3", &sizes, &why)) << why;
  EXPECT_EQ(sizes.value_max(), 65536u);
  int large = 0;
  for (uint64_t id = 0; id < 10'000; ++id) {
    const ItemSizes one = sizes.of(1, id);
    ASSERT_TRUE(one.value == 512 || one.value == 65536);
    ASSERT_EQ(one.key, 16u);
    large += one.value == 65536 ? 1 : 0;
  }
  EXPECT_NEAR(large, 7500, 200);
  for (const char* text :
       {"steps:16", "steps:16:", "steps:16:5", "steps:16:5=", "steps:16:5=0", "steps:7:5=1",
        "steps:16:2000000=1", "steps:16:5=1,", "steps:16:5=1:2"}) {
    EXPECT_FALSE(Sizes::parse(text, &sizes, &why)) << text;
  }
}

TEST(Sizes, KeysHaveTheirWeights) {
  Sizes sizes;
  std::string why;
  ASSERT_TRUE(Sizes::parse("keys:2:16=3,128=1", &sizes, &why)) << why;
  EXPECT_EQ(sizes.value_max(), 2u);
  int small = 0;
  for (uint64_t id = 0; id < 10'000; ++id) {
    const ItemSizes one = sizes.of(1, id);
    ASSERT_TRUE(one.key == 16 || one.key == 128);
    ASSERT_EQ(one.value, 2u);
    small += one.key == 16 ? 1 : 0;
  }
  EXPECT_NEAR(small, 7500, 200);
  for (const char* text : {"keys:2", "keys:2:", "keys:2:16", "keys:2:16=0", "keys:2:7=1",
                           "keys:2:251=1", "keys:2000000:16=1", "keys:2:16=1,", "keys:x:16=1"}) {
    EXPECT_FALSE(Sizes::parse(text, &sizes, &why)) << text;
  }
}

TEST(Sizes, ParsesAndRefuses) {
  Sizes sizes;
  std::string why;
  ASSERT_TRUE(Sizes::parse("fixed:16:32", &sizes, &why));
  EXPECT_EQ(sizes.of(1, 5).key, 16u);
  EXPECT_EQ(sizes.of(1, 5).value, 32u);
  ASSERT_TRUE(Sizes::parse("uniform:20:10:12", &sizes, &why));
  std::set<uint32_t> seen;
  for (uint32_t id = 0; id < 100; ++id) seen.insert(sizes.of(1, id).value);
  EXPECT_EQ(seen, (std::set<uint32_t>{10, 11, 12}));
  for (const char* bad : {"", "etc:1", "fixed", "fixed:16", "fixed:7:32", "fixed:251:32",
                          "fixed:16:1000001", "fixed:16:x", "uniform:16:5:4", "fixed:16:32:"}) {
    EXPECT_FALSE(Sizes::parse(bad, &sizes, &why)) << bad;
  }
}

TEST(ItemMaker, KeysDifferAndAreFitForTheProtocol) {
  const ItemMaker maker(1);
  std::set<std::string> keys;
  for (uint32_t id = 0; id < 40000; ++id) {
    std::string key(id % 2 == 0 ? kKeySizeMin : 40u, '\0');
    maker.write_key(id, static_cast<uint32_t>(key.size()), key.data());
    for (const char c : key) ASSERT_TRUE((c >= 'a' && c <= 'z') || (c >= '0' && c <= '5')) << key;
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 40000u);
}

TEST(ItemMaker, AnyChangedByteIsNoticed) {
  const ItemMaker maker(1);
  for (const uint32_t size : {1u, 7u, 8u, 9u, 32u, 100u}) {
    std::vector<char> value(size);
    maker.write_value(3, 5, size, value.data());
    EXPECT_TRUE(maker.value_is(3, 5, value.data(), size));
    for (char& c : value) {
      c = static_cast<char>(c ^ 1);
      EXPECT_FALSE(maker.value_is(3, 5, value.data(), size));
      c = static_cast<char>(c ^ 1);
    }
    if (size >= 8) {
      EXPECT_FALSE(maker.value_is(3, 6, value.data(), size));
      EXPECT_FALSE(maker.value_is(4, 5, value.data(), size));
    }
  }
  EXPECT_TRUE(maker.value_is(3, 5, nullptr, 0));
  EXPECT_NE(maker.flags(3, 5), maker.flags(3, 6));
  uint32_t version = 0;
  EXPECT_TRUE(maker.version_of(3, maker.flags(3, 5), &version));
  EXPECT_EQ(version, 5u);
  EXPECT_FALSE(maker.version_of(4, maker.flags(3, 5), &version));
}

}  // namespace
}  // namespace warpcache::bench
