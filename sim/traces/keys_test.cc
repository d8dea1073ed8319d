// SPDX-License-Identifier: Apache-2.0
#include "traces/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "traces/ycsb.h"

namespace warpcache::sim {
namespace {

std::unique_ptr<KeyChooser> keys(const std::string& text, uint64_t count) {
  std::string why;
  std::unique_ptr<KeyChooser> chooser = make_keys(text, count, &why);
  EXPECT_NE(chooser, nullptr) << why;
  return chooser;
}

std::vector<double> shares(KeyChooser* chooser, uint64_t count, int draws) {
  std::vector<double> out(count);
  bench::Random random(1);
  for (int i = 0; i < draws; ++i) out.at(chooser->next(&random)) += 1.0 / draws;
  return out;
}

TEST(Keys, ZipfIsTheSameScatteredOrNot) {
  constexpr int kDraws = 300'000;
  const std::vector<double> ranks = shares(keys("zipf-ranks:0.99", 100).get(), 100, kDraws);
  std::vector<double> scattered = shares(keys("zipf:0.99", 100).get(), 100, kDraws);
  EXPECT_FALSE(std::is_sorted(scattered.rbegin(), scattered.rend()));
  const Scatter scatter(100);
  for (uint64_t rank = 0; rank < 100; ++rank) {
    const double expected = std::pow(static_cast<double>(rank) + 1, -0.99) / zeta(100, 0.99);
    EXPECT_NEAR(ranks[rank], expected, 5 * std::sqrt(expected / kDraws)) << rank;
    EXPECT_EQ(ranks[rank], scattered[scatter(rank)]);  // the same draws
  }
}

TEST(Keys, UniformIsUniform) {
  for (const double share : shares(keys("uniform", 50).get(), 50, 200'000)) {
    EXPECT_NEAR(share, 0.02, 0.0017);
  }
}

TEST(Keys, ScatterIsOneToOne) {
  for (const uint64_t count : {2u, 3u, 10u, 97u, 1000u, 4096u}) {
    const Scatter scatter(count);
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < count; ++i) seen.insert(scatter(i));
    EXPECT_EQ(seen.size(), count);
    EXPECT_LT(*seen.rbegin(), count);
  }
}

TEST(Keys, LatestCountsBackFromTheNewest) {
  const std::unique_ptr<KeyChooser> latest = keys("latest:0.99", 100);
  const YcsbZipfian zipfian(100, 0.99);
  bench::Random one(9), two(9);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(latest->next(&one), 99 - zipfian.rank_at(two.next_unit()));
  }
  latest->inserted(101);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(latest->next(&one));
  EXPECT_EQ(*seen.rbegin(), 100u);
}

TEST(Keys, DriftMovesTheHotKeys) {
  const std::unique_ptr<KeyChooser> drift = keys("drift:2:10000", 50);
  for (uint64_t step = 0; step < 3; ++step) {
    const std::vector<double> seen = shares(drift.get(), 50, 10'000);
    EXPECT_EQ(static_cast<uint64_t>(std::max_element(seen.begin(), seen.end()) - seen.begin()),
              step);
  }
}

TEST(Keys, OneHitWondersNeverComeAgain) {
  const std::unique_ptr<KeyChooser> mixed = add_one_hits(keys("uniform", 10), 0.25);
  bench::Random random(2);
  std::set<uint64_t> once;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t key = mixed->next(&random);
    if (key < kOneHitBase) continue;
    EXPECT_TRUE(once.insert(key).second);
  }
  EXPECT_NEAR(static_cast<double>(once.size()), 25'000, 700);
}

TEST(Keys, ScansAskForKeysInARow) {
  constexpr uint64_t kKeys = 1'000'000;
  const std::unique_ptr<KeyChooser> mixed = add_scans(keys("uniform", kKeys), 0.4, 100, kKeys);
  bench::Random random(2);
  int in_a_row = 0;
  uint64_t last = 0;
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t key = mixed->next(&random);
    ASSERT_LT(key, kKeys);
    if (key == last + 1) ++in_a_row;
    last = key;
  }
  EXPECT_NEAR(in_a_row, 200'000 * 0.4 * 0.99, 6000);
}

// Three loops of 50 keys, at 0, 333 and 666: read from the first key to the last, again and again.
TEST(Keys, LoopsComeAgain) {
  constexpr uint64_t kKeys = 1000;
  const std::unique_ptr<KeyChooser> loops = add_loops(keys("uniform", kKeys), 0.99, 50, 3, kKeys);
  bench::Random random(2);
  uint64_t counts[kKeys] = {};
  for (int i = 0; i < 100'000; ++i) ++counts[loops->next(&random)];
  for (const uint64_t begin : {0u, 333u, 666u}) {
    for (uint64_t i = 0; i < 50; ++i)
      EXPECT_NEAR(static_cast<double>(counts[begin + i]), 660, 160) << begin + i;
    EXPECT_LT(counts[begin + 50], 20u);
  }
}

TEST(Keys, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"", "zipf", "zipf:", "zipf:x", "zipf:-1", "zipf:9", "uniform:1",
                           "ycsb-zipf:1", "ycsb-zipf:0", "latest", "drift:1", "drift:1:0",
                           "ycsb-scrambled:1", "zipf:1:2", "zipf:nan"}) {
    std::string why;
    EXPECT_EQ(make_keys(text, 10, &why), nullptr) << text;
    EXPECT_NE(why.find("drift:S:N"), std::string::npos);
  }
}

}  // namespace
}  // namespace warpcache::sim
