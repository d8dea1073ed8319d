// SPDX-License-Identifier: Apache-2.0
#include "load/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "workload/random.h"

namespace warpcache::load {
namespace {

TEST(Histogram, IsEmptyAtFirst) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.mean(), 0.0);
  EXPECT_EQ(histogram.quantile(0.99), 0u);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 500; ++value) histogram.record(value);
  EXPECT_EQ(histogram.count(), 500u);
  EXPECT_EQ(histogram.quantile(0), 1u);
  EXPECT_EQ(histogram.quantile(0.5), 250u);
  EXPECT_EQ(histogram.quantile(0.99), 495u);
  EXPECT_EQ(histogram.quantile(1), 500u);
  EXPECT_DOUBLE_EQ(histogram.mean(), 250.5);
}

TEST(Histogram, EveryValueIsKnownToWithinHalfAPercent) {
  for (uint64_t value = 1; value < Histogram::kValueMax; value += 1 + value / 7) {
    Histogram histogram;
    histogram.record(value);
    const uint64_t seen = histogram.quantile(0.5);
    ASSERT_GE(seen, value);
    ASSERT_LE(static_cast<double>(seen - value), 0.004 * static_cast<double>(value)) << value;
  }
}

TEST(Histogram, QuantilesAreThoseOfTheSortedValues) {
  bench::Random random(3);
  Histogram histogram;
  std::vector<uint64_t> values;
  for (int i = 0; i < 20000; ++i) {
    values.push_back(uint64_t{1} << (random.next() % 30));
    values.back() += random.next() % values.back();
    histogram.record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const auto index = static_cast<size_t>(share * 20000) - 1;
    const auto exact = static_cast<double>(values[index]);
    EXPECT_NEAR(static_cast<double>(histogram.quantile(share)), exact, 0.004 * exact) << share;
  }
}

TEST(Histogram, ValuesBeyondTheLastBucketCountInIt) {
  Histogram histogram;
  histogram.record(~uint64_t{0});
  EXPECT_EQ(histogram.count(), 1u);
  EXPECT_EQ(histogram.quantile(1), Histogram::kValueMax);
}

TEST(Histogram, AddsAndSubtracts) {
  Histogram one, two;
  one.record(10);
  two.record(1000);
  two.record(2000);
  const Histogram before = one;
  one.add(two);
  EXPECT_EQ(one.count(), 3u);
  EXPECT_DOUBLE_EQ(one.mean(), 3010.0 / 3);
  one.subtract(before);
  EXPECT_EQ(one.count(), 2u);
  EXPECT_DOUBLE_EQ(one.mean(), 1500.0);
  EXPECT_GE(one.quantile(0), 1000u);
}

}  // namespace
}  // namespace warpcache::load
