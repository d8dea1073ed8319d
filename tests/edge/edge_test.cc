// SPDX-License-Identifier: Apache-2.0
//
// EDGE's queues and scheduler: each event runs exactly once, whatever happens beside it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "edge/test_events.h"
#include "gpu/device.h"

namespace warpcache::edge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(60);

// Queues with the tests' event kernels, and counters that the GPU sees.
class EdgeTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kCounters = 1 << 20;

  void SetUp() override { config_ = default_config(); }
  void TearDown() override {
    if (runtime_ == nullptr) return;
    EXPECT_EQ(edge_close(runtime_), EDGE_OK);
  }

  static edge_config default_config() {
    edge_config config = {};
    config.program = program_of_tests();
    config.workers = 3;
    config.threads = 64;
    config.depth_max = 64;
    config.wait_ms_max = 60000;
    return config;
  }

  bool open() {
    const edge_status status = edge_open(&config_, &runtime_);
    if (status == EDGE_NO_DEVICE) return false;
    EXPECT_EQ(status, EDGE_OK) << edge_why(runtime_);
    queues_ = edge_queues_of(runtime_);
    EXPECT_TRUE(counters_.allocate(gpu::CudaMemory::Place::kHost, kCounters * sizeof(uint32_t)));
    return status == EDGE_OK;
  }

  uint32_t add_event(TestFunction function, uint32_t parameter_bytes, uint32_t depth,
                     uint32_t flags = 0, uint32_t blocks = 1,
                     edge_priority priority = EDGE_PRIORITY_NORMAL) {
    edge_event event = {};
    event.function = function;
    event.blocks = blocks;
    event.parameter_bytes = parameter_bytes;
    event.depth = depth;
    event.flags = flags;
    event.priority = priority;
    uint32_t id = ~0u;
    EXPECT_EQ(edge_register_event(runtime_, &event, &id), EDGE_OK) << edge_why(runtime_);
    return id;
  }

  template <typename Parameters>
  edge_status schedule(uint32_t id, const Parameters& parameters, uint32_t* number = nullptr,
                       uint32_t blocks = 0) {
    return edge_schedule(queues_, id, &parameters, sizeof(parameters), blocks, number);
  }

  // The oldest completion; false: none came in time.
  bool wait_for(uint32_t id, uint32_t* number, uint32_t* code) {
    const auto end = Clock::now() + kPatience;
    while (true) {
      const edge_status status = edge_poll(queues_, id, number, code);
      if (status == EDGE_OK) return true;
      if (Clock::now() > end || edge_check(runtime_) != EDGE_OK) {
        ADD_FAILURE() << edge_status_text(status) << ", " << edge_why(runtime_);
        return false;
      }
      std::this_thread::yield();
    }
  }

  CountParameters counting(uint32_t index) const {
    return {reinterpret_cast<uint64_t>(counters_.data()), index, 0};
  }
  uint32_t counter(uint32_t index) const {
    return __atomic_load_n(counters_.as<uint32_t>() + index, __ATOMIC_ACQUIRE);
  }

  edge_config config_ = {};
  edge_runtime* runtime_ = nullptr;
  edge_queues* queues_ = nullptr;
  gpu::CudaMemory counters_;
};

#define OPEN_OR_SKIP() \
  if (!open()) GTEST_SKIP() << "no GPU"

TEST_F(EdgeTest, AnEventRunsAndSaysItsCode) {
  OPEN_OR_SKIP();
  const uint32_t id = add_event(kAdd, sizeof(AddParameters), 8);
  uint32_t number = 0;
  ASSERT_EQ(schedule(id, AddParameters{40, 2}, &number), EDGE_OK);
  uint32_t done = 0;
  uint32_t code = 0;
  ASSERT_TRUE(wait_for(id, &done, &code));
  EXPECT_EQ(done, number);
  EXPECT_EQ(code, 42u);
}

TEST_F(EdgeTest, EachEventRunsOnceThroughManyWraps) {
  OPEN_OR_SKIP();
  constexpr uint32_t kEvents = 500;
  const uint32_t id = add_event(kCount, sizeof(CountParameters), 16);
  uint32_t submitted = 0;
  uint32_t completed = 0;
  const auto end = Clock::now() + kPatience;
  while (completed < kEvents && Clock::now() < end) {
    if (submitted < kEvents) {
      const edge_status status = schedule(id, counting(submitted));
      if (status == EDGE_OK) ++submitted;
      ASSERT_TRUE(status == EDGE_OK || status == EDGE_FULL);
    }
    uint32_t number = 0;
    uint32_t code = 1;
    while (edge_poll(queues_, id, &number, &code) == EDGE_OK) {
      ASSERT_EQ(number, ++completed);
      ASSERT_EQ(code, 0u);
    }
  }
  ASSERT_EQ(completed, kEvents);
  for (uint32_t i = 0; i < kEvents; ++i) ASSERT_EQ(counter(i), 1u) << i;
  EXPECT_EQ(counter(kEvents), 0u);
}

}  // namespace
}  // namespace warpcache::edge
