// SPDX-License-Identifier: Apache-2.0
#include "traces/ycsb.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "workload/random.h"

namespace warpcache::sim {
namespace {

TEST(Ycsb, ZetaIsTheSum) {
  EXPECT_DOUBLE_EQ(zeta(1, 0.99), 1.0);
  EXPECT_DOUBLE_EQ(zeta(4, 1.0), 1.0 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4);
}

// YCSB's constant for 10^10 items, by the Euler-Maclaurin formula from a partial sum.
TEST(Ycsb, ScrambledUsesTheZetaOfTenBillionItems) {
  constexpr double kFrom = 10000;
  constexpr double kTo = 1e10;
  const auto term = [](double x) { return std::pow(x, -0.99); };
  const double integral = (std::pow(kTo, 0.01) - std::pow(kFrom, 0.01)) / 0.01;
  const double sum = zeta(10000, 0.99) + integral + (term(kTo) - term(kFrom)) / 2;
  EXPECT_NEAR(sum, YcsbScrambledZipfian::kZeta, 1e-7);
}

// The first two ranks have exactly Zipf's probabilities, all others those of its integral, scaled.
TEST(Ycsb, ZipfianHasTheProbabilitiesOfItsDefinition) {
  constexpr uint64_t kItems = 10000;
  constexpr double kTheta = 0.99;
  const YcsbZipfian zipfian(kItems, kTheta);
  const double sum = zeta(kItems, kTheta);
  EXPECT_NEAR(zipfian.probability(0), 1.0 / sum, 1e-12);
  EXPECT_NEAR(zipfian.probability(1), std::pow(2.0, -kTheta) / sum, 1e-12);
  const auto power = [&](double rank) { return std::pow(rank / kItems, 1 - kTheta); };
  const double rest = 1.0 - (1.0 + std::pow(2.0, -kTheta)) / sum;
  double all = 0;
  for (uint64_t rank = 0; rank < kItems; ++rank) {
    all += zipfian.probability(rank);
    if (rank < 2) continue;
    const auto r = static_cast<double>(rank);
    const double expected = rest * (power(r + 1) - power(r)) / (1.0 - power(2));
    ASSERT_NEAR(zipfian.probability(rank), expected, 1e-9) << rank;
  }
  EXPECT_NEAR(all, 1.0, 1e-9);
}

TEST(Ycsb, DrawsHaveTheseProbabilities) {
  constexpr uint64_t kItems = 100;
  constexpr int kDraws = 400'000;
  const YcsbZipfian zipfian(kItems, 0.99);
  std::vector<double> seen(kItems);
  bench::Random random(3);
  for (int i = 0; i < kDraws; ++i) seen.at(zipfian.rank_at(random.next_unit())) += 1.0 / kDraws;
  for (uint64_t rank = 0; rank < kItems; ++rank) {
    const double expected = zipfian.probability(rank);
    const double deviation = std::sqrt(expected / kDraws);
    EXPECT_NEAR(seen[rank], expected, 5 * deviation) << rank;
  }
  EXPECT_EQ(zipfian.rank_at(0.0), 0u);
  EXPECT_EQ(zipfian.rank_at(std::nextafter(1.0, 0.0)), kItems - 1);
}

TEST(Ycsb, GrowingIsBeingMadeLarger) {
  YcsbZipfian grown(100, 0.99);
  grown.grow(137);
  const YcsbZipfian made(137, 0.99);
  EXPECT_EQ(grown.items(), 137u);
  for (uint64_t rank = 0; rank < 137; ++rank) {
    EXPECT_NEAR(grown.probability(rank), made.probability(rank), 1e-12);
  }
}

// FNV-1a as its authors publish it: the empty input hashes to the offset, and zero bytes multiply.
TEST(Ycsb, HashIsFnv) {
  constexpr uint64_t kPrime = 1099511628211;
  uint64_t expected = 0xcbf29ce484222325;
  for (int i = 0; i < 8; ++i) expected *= kPrime;
  const auto number = static_cast<int64_t>(expected);
  EXPECT_EQ(ycsb_hash(0), static_cast<uint64_t>(number < 0 ? -number : number));
  EXPECT_NE(ycsb_hash(1), ycsb_hash(2));
  for (uint64_t value = 0; value < 1000; ++value) EXPECT_LT(ycsb_hash(value), uint64_t{1} << 63);
}

// A key's probability is the sum over the ranks that are hashed to it: the hottest ranks' keys have
// at least these, and what lies beyond is spread evenly.
TEST(Ycsb, ScrambledKeysHaveTheSumOfTheirRanks) {
  constexpr uint64_t kKeys = 1000;
  constexpr uint64_t kExact = 200'000;  // ranks summed one by one
  constexpr int kDraws = 1'000'000;
  const YcsbZipfian ranks(YcsbScrambledZipfian::kItems, 0.99, YcsbScrambledZipfian::kZeta);
  std::vector<double> expected(kKeys);
  double left = 1.0;
  for (uint64_t rank = 0; rank < kExact; ++rank) {
    expected[ycsb_hash(rank) % kKeys] += ranks.probability(rank);
    left -= ranks.probability(rank);
  }
  const YcsbScrambledZipfian scrambled(kKeys);
  std::vector<double> seen(kKeys);
  bench::Random random(5);
  for (int i = 0; i < kDraws; ++i) seen.at(scrambled.key_at(random.next_unit())) += 1.0 / kDraws;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const double p = expected[key] + left / kKeys;
    EXPECT_NEAR(seen[key], p, 6 * std::sqrt(p / kDraws)) << key;
  }
}

}  // namespace
}  // namespace warpcache::sim
