// SPDX-License-Identifier: Apache-2.0
//
// Queues with the tests' event kernels, and counters that the GPU sees.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "base/testing/patience.h"
#include "edge/queues.h"
#include "edge/test_events.h"
#include "gpu/device.h"

namespace warpcache::edge {

using Clock = std::chrono::steady_clock;

// For anything that the GPU does: the test fails after it.

class EdgeTest : public ::testing::Test {
 public:
  static constexpr uint32_t kCounters = 1 << 20;

  void SetUp() override {
    config_.program = program_of_tests();
    config_.workers = 3;
    config_.threads = 64;
    config_.depth_max = 64;
    config_.wait_ms_max = 60000;
  }
  void TearDown() override {
    if (runtime_ == nullptr) return;
    EXPECT_EQ(edge_close(runtime_), EDGE_OK);
  }

  // False: there is no GPU for this.
  bool open() {
    // Taking memory may wait for kernels: it comes before the scheduler.
    gpu::DeviceFacts facts;
    const bool there = gpu::open_device(0, &facts).empty();
    if (there) {
      EXPECT_TRUE(counters_.allocate(gpu::CudaMemory::Place::kHost, kCounters * sizeof(uint32_t)));
    }
    const edge_status status = edge_open(&config_, &runtime_);
    if (status == EDGE_NO_DEVICE) return false;
    EXPECT_EQ(status, EDGE_OK) << edge_why(runtime_);
    queues_ = edge_queues_of(runtime_);
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

  template <typename Condition>
  bool eventually(const Condition& condition) {
    const auto end = Clock::now() + kPatience;
    while (!condition()) {
      if (Clock::now() > end || edge_check(runtime_) != EDGE_OK) return false;
      std::this_thread::sleep_for(
          std::chrono::microseconds(20));  // a simulated GPU has its processor
    }
    return true;
  }

  // The oldest completion; false: none came in time.
  bool wait_for(uint32_t id, uint32_t* number, uint32_t* code) {
    return eventually([&] { return edge_poll(queues_, id, number, code) == EDGE_OK; });
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
  if (!open()) GTEST_SKIP() << edge_why(runtime_)

}  // namespace warpcache::edge
