// SPDX-License-Identifier: Apache-2.0
//
// Items in a GPU's memory expire by the host's clock, whatever keeps the GPU busy: in this test
// nothing reports the time to it.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "engine/testing/rig.h"
#include "engine/testing/store_admin.h"
#include "gpu/talker.h"

namespace warpcache::gpu_tests {
namespace {

using engine::RigKind;

class ClockTest : public testing::TestWithParam<RigKind> {};

TEST_P(ClockTest, ItemsExpireThoughTheGpuIsNotToldTheTime) {
  engine::RigConfig config;
  config.store.memory_limit = config.store.memory_reach = uint64_t{64} << 20;
  config.store.maintenance_thread = false;
  std::string why;
  const std::unique_ptr<engine::Rig> rig = engine::make_rig(GetParam(), config, &why);
  if (rig == nullptr) GTEST_SKIP() << why;
  engine::StoreAdmin admin(rig->store());
  Talker talker(rig->make_engine(admin));
  EXPECT_EQ(talker.say("set brief 0 2 1\r\n1\r\nset kept 0 60 1\r\n1\r\nget brief\r\n"),
            "STORED\r\nSTORED\r\nVALUE brief 0 1\r\n1\r\nEND\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  EXPECT_EQ(talker.say("get brief\r\nget kept\r\n"), "END\r\nVALUE kept 0 1\r\n1\r\nEND\r\n");
  rig->rest();
}

INSTANTIATE_TEST_SUITE_P(Engines, ClockTest,
                         testing::Values(RigKind::kCudaLaunch, RigKind::kCudaPersistent,
                                         RigKind::kCudaHostValues, RigKind::kCudaEdge),
                         [](const auto& made) { return engine::rig_name(made.param); });

}  // namespace
}  // namespace warpcache::gpu_tests
