// SPDX-License-Identifier: Apache-2.0
//
// Eviction on a GPU must be as good as on the host: with the same requests and the same memory it
// gives the same hit ratio.
#include "gpu/hit_ratio.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "engine/testing/rig.h"
#include "engine/testing/store_admin.h"

namespace warpcache::gpu_tests {
namespace {

using engine::RigKind;

constexpr double kPointsMax = 0.5;
constexpr uint64_t kRefusedShare = 1000;  // one set in this number at most

// False, with the reason in `why`, if there is no such engine.
bool measure(RigKind kind, const HitRatioConfig& config, HitRatio* ratio, std::string* why) {
  engine::RigConfig rig_config;
  rig_config.store.memory_limit = rig_config.store.memory_reach = config.memory_bytes;
  rig_config.store.seed = 42;
  const std::unique_ptr<engine::Rig> rig = engine::make_rig(kind, rig_config, why);
  if (rig == nullptr) return false;
  engine::StoreAdmin admin(rig->store());
  const auto begin = std::chrono::steady_clock::now();
  *ratio = measure_hit_ratio(rig->make_engine(admin), config);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const store::StoreStats stats = rig->store().stats();
  std::printf(
      "%.2f%% of %llu gets hit, %llu sets, %llu refused, %llu evicted, %llu bytes of index, %.1f "
      "s\n",
      ratio->percent(), static_cast<unsigned long long>(ratio->gets),
      static_cast<unsigned long long>(ratio->sets), static_cast<unsigned long long>(ratio->refused),
      static_cast<unsigned long long>(stats.get(store::StoreCounter::kEvicted)),
      static_cast<unsigned long long>(stats.index_bytes), took.count());
  return true;
}

class HitRatioTest : public testing::TestWithParam<RigKind> {};

TEST_P(HitRatioTest, IsThatOfTheCpuEngine) {
  const HitRatioConfig config;
  HitRatio cpu;
  HitRatio other;
  std::string why;
  if (!measure(GetParam(), config, &other, &why)) GTEST_SKIP() << why;
  ASSERT_TRUE(measure(RigKind::kCpu, config, &cpu, &why));
  EXPECT_NEAR(other.percent(), cpu.percent(), kPointsMax);
  EXPECT_GT(cpu.percent(), 30);
  EXPECT_LT(cpu.percent(), 95);
  for (const HitRatio& ratio : {cpu, other}) {
    EXPECT_EQ(ratio.wrong, 0u);
    EXPECT_LE(ratio.refused, ratio.sets / kRefusedShare);
  }
}

// The CPU engine against itself shows whether the measurement repeats.
INSTANTIATE_TEST_SUITE_P(Engines, HitRatioTest,
                         testing::Values(RigKind::kCpu, RigKind::kCudaLaunch,
                                         RigKind::kCudaPersistent, RigKind::kCudaEdge),
                         [](const auto& made) { return engine::rig_name(made.param); });

}  // namespace
}  // namespace warpcache::gpu_tests
