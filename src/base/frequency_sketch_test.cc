// SPDX-License-Identifier: Apache-2.0
#include "base/frequency_sketch.h"

#include <gtest/gtest.h>

namespace warpcache {
namespace {

TEST(FrequencySketch, CountsWhatItHasSeen) {
  FrequencySketch sketch(100);
  EXPECT_EQ(sketch.add(1), 1u);
  EXPECT_EQ(sketch.add(1), 2u);
  EXPECT_EQ(sketch.add(2), 1u);
  EXPECT_EQ(sketch.add(1), 3u);
}

TEST(FrequencySketch, IsSeldomTooHigh) {
  FrequencySketch sketch(1000);
  uint32_t wrong = 0;
  for (uint64_t hash = 0; hash < 1000; ++hash) wrong += sketch.add(hash << 20) != 1 ? 1u : 0u;
  EXPECT_LT(wrong, 20u);
}

TEST(FrequencySketch, ForgetsWhatWasFrequent) {
  FrequencySketch sketch(4);
  for (int i = 0; i < 20; ++i) (void)sketch.add(1);
  EXPECT_EQ(sketch.add(1), 21u);
  for (uint64_t i = 0; i < 150; ++i) (void)sketch.add(1000 + i % 3);
  EXPECT_LT(sketch.add(1), 5u);
}

TEST(FrequencySketch, CountsNoFurtherThanItCan) {
  FrequencySketch sketch(1000);
  uint32_t seen = 0;
  for (int i = 0; i < 1000; ++i) seen = sketch.add(1);
  EXPECT_EQ(seen, 255u);
}

}  // namespace
}  // namespace warpcache
