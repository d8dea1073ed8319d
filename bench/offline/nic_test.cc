// SPDX-License-Identifier: Apache-2.0
//
// The CUDA engine on frames that a stand-in for a network card brings and takes away, in whatever
// the build has as a GPU.
#include <gtest/gtest.h>

#include <string>

#include "gpu/device.h"
#include "offline/backend.h"
#include "offline/study.h"

namespace warpcache::offline {
namespace {

void expect_all_right_on_gpu(const BackendConfig& backend, double requests_per_s = 0) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) GTEST_SKIP() << "there is no GPU";
  StudyConfig config;
  config.workload.keys = 500;
  config.workload.hit_ratio = 0.85;
  config.requests = 2000;
  config.batches = {64};
  config.passes = 2;
  config.requests_per_s = requests_per_s;
  const StudyResult result =
      run_study(config, *make_gpu_backend(backend), [](const std::string&) {});
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_EQ(result.rows[0].wrong, 0u) << result.rows[0].first_wrong;
  EXPECT_EQ(result.rows[0].verified, config.requests);
}

BackendConfig with_nic() {
  BackendConfig backend;
  backend.memory_bytes = uint64_t{64} << 20;
  backend.depth = 2;
  backend.blocks = 2;
  backend.device_memory = true;
  backend.nic = true;
  return backend;
}

TEST(NicTest, FramesInTheGpusMemory) { expect_all_right_on_gpu(with_nic()); }

TEST(NicTest, APersistentKernel) {
  BackendConfig backend = with_nic();
  backend.persistent = true;
  expect_all_right_on_gpu(backend);
}

TEST(NicTest, AtARate) { expect_all_right_on_gpu(with_nic(), 100'000); }

// What it is compared with: the paper's NGD.
TEST(NicTest, FramesInTheHostsMemory) {
  BackendConfig backend = with_nic();
  backend.device_memory = backend.nic = false;
  expect_all_right_on_gpu(backend);
}

}  // namespace
}  // namespace warpcache::offline
