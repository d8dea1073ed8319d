// SPDX-License-Identifier: Apache-2.0
//
// The CUDA engine on the simulated GPU, with launches and with a persistent kernel, against the
// model of memcached and the checks of concurrency. The long forms are run_model and stress_run
// with --engine cuda, and a server with --engine=cuda, each with SIMT_GPU=1.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/testing/effort.h"
#include "engine/cuda/packets/packet_runner.h"
#include "model/crowd.h"
#include "model/generator.h"
#include "model/pipeline.h"
#include "model/player.h"
#include "store/cuda/cuda_store.h"
#include "stress/scenario.h"

namespace warpcache {
namespace {

using engine::RigKind;

class SimulatedGpu : public testing::TestWithParam<RigKind> {};

// What does not depend on where values lie is tried at night with values on the host, and by day
// with the three other kinds.
bool left_to_the_night(RigKind kind) {
  return kind == RigKind::kCudaHostValues && !testing_effort(false, true);
}

constexpr const char* kAtNight = "tested at night";

TEST_P(SimulatedGpu, AnswersAsTheModel) {
  size_t commands = 0;
  const uint64_t seeds = testing_effort<uint64_t>(6, 60);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    model::SeededDice dice(seed);
    const model::Script script = model::Generator({}, dice).generate();
    const model::Played played = play(script, *model::start_pipeline(script, GetParam()));
    commands += played.commands;
    ASSERT_FALSE(played.difference.has_value())
        << "seed " << seed << ", " << describe(*played.difference) << write_script(script);
  }
  EXPECT_GT(commands, 30 * seeds);
}

TEST_P(SimulatedGpu, LargeBatchesOfManyStreamsAnswerAsTheModels) {
  if (left_to_the_night(GetParam())) GTEST_SKIP() << kAtNight;
  // EDGE's seventeen blocks poll for each batch.
  const uint32_t brief = GetParam() == engine::RigKind::kCudaEdge ? 2 : 6;
  const uint32_t rounds = testing_effort(brief, 60u);
  const model::CrowdResult result = model::play_crowd(
      {.players = 48, .rounds = rounds, .messages_max = 50, .engine = GetParam()});
  EXPECT_GT(result.commands, 600 * rounds);
  EXPECT_EQ(result.broken, "");
  for (const auto& failure : result.failures) {
    ADD_FAILURE() << describe(failure.difference) << write_script(failure.script);
  }
}

// Administrative commands run in order with other commands, however many a stream has sent.
TEST_P(SimulatedGpu, AdministrativeCommandsKeepTheirOrder) {
  if (left_to_the_night(GetParam())) GTEST_SKIP() << kAtNight;
  model::PipelineConfig config;
  config.engine = GetParam();
  model::Pipeline pipeline(config);
  std::string expected;
  for (int i = 0; i < 50; ++i) expected += "STORED\r\nOK\r\nEND\r\n";
  for (int stream = 1; stream <= 8; ++stream) {
    const std::string key = "k" + std::to_string(stream);
    std::string sent;
    for (int i = 0; i < 50; ++i) {
      sent += "set " + key + " 0 0 1\r\nx\r\nflush_all\r\nget " + key + "\r\n";
    }
    pipeline.send(stream, sent);
  }
  ASSERT_TRUE(pipeline.run());
  for (int stream = 1; stream <= 8; ++stream) EXPECT_EQ(pipeline.take_output(stream), expected);
}

// Values are copied by several threads, in words, wherever they begin and end; long ones come in
// pieces and may lie in several segments.
TEST_P(SimulatedGpu, ValuesOfEverySizeAndPlaceComeBack) {
  std::string bytes(700'000, ' ');
  std::minstd_rand random(1);
  for (char& byte : bytes) byte = static_cast<char>('a' + random() % 26);
  // Chains begin at 32 and at 512 KB. By day the second with launches alone: what copies is the
  // same.
  std::vector<uint64_t> memories_mib = {64};
  if (GetParam() == RigKind::kCudaLaunch || testing_effort(false, true))
    memories_mib.push_back(1024);
  for (const uint64_t memory_mib : memories_mib) {
    model::PipelineConfig config;
    config.engine = GetParam();
    config.memory_bytes = memory_mib << 20;
    model::Pipeline pipeline(config);
    uint32_t number = 0;
    std::string sets;
    std::string gets;
    std::string values;
    const auto flush = [&] {
      std::string expected;
      for (auto i = std::count(gets.begin(), gets.end(), '\n'); i > 0; --i)
        expected += "STORED\r\n";
      pipeline.send(1, sets);
      ASSERT_TRUE(pipeline.run());
      ASSERT_EQ(pipeline.take_output(1), expected);
      pipeline.send(1, gets);
      ASSERT_TRUE(pipeline.run());
      ASSERT_TRUE(pipeline.take_output(1) == values) << sets.substr(0, 40);
      sets.clear();
      gets.clear();
      values.clear();
    };
    const auto add = [&](size_t key_size, size_t size) {
      std::string key = std::to_string(++number);
      key.resize(key_size, 'k');
      const std::string value = bytes.substr(random() % 64, size);
      sets += "set " + key + " 5 " + std::to_string(number % 2 * 1000) + " " +
              std::to_string(size) + "\r\n" + value + "\r\n";
      gets += "get " + key + "\r\n";
      values += "VALUE " + key + " 5 " + std::to_string(size) + "\r\n" + value + "\r\nEND\r\n";
    };
    // Alone, few and many in a batch.
    for (const size_t batch : {1u, 4u, 100u}) {
      size_t waiting = 0;
      for (size_t size = 0; size < 100; ++size) {
        add(5 + size % 17, size);
        if (++waiting % batch == 0) flush();
      }
    }
    for (const size_t size : {1000u, 4095u, 4096u, 4097u, 8200u, 20'000u, 33'000u, 60'000u, 70'000u,
                              140'000u, 300'000u, 699'000u}) {
      for (const size_t key_size : {7u, 16u, 30u}) {
        add(key_size, size);
        flush();
      }
    }
    for (const size_t size : {3000u, 5000u, 9000u, 31'000u}) {
      for (size_t i = 0; i < 20; ++i) add(8 + i, size + i);
      flush();
    }
    // One thread writes an old value and new bytes.
    for (size_t size = 1; size < 3000; size = size * 3 / 2 + 1) {
      const std::string first = bytes.substr(0, size);
      const std::string second = bytes.substr(100, size / 2 + 7);
      const std::string all = std::to_string(first.size() + second.size());
      pipeline.send(1, "set joined 0 0 " + std::to_string(first.size()) + "\r\n" + first +
                           "\r\nappend joined 0 0 " + std::to_string(second.size()) + "\r\n" +
                           second + "\r\nget joined\r\n");
      ASSERT_TRUE(pipeline.run());
      ASSERT_EQ(pipeline.take_output(1), "STORED\r\nSTORED\r\nVALUE joined 0 " + all + "\r\n" +
                                             first + second + "\r\nEND\r\n");
    }
    EXPECT_EQ(pipeline.finish(), "");
  }
}

TEST_P(SimulatedGpu, OldBugsStayAway) {
  if (left_to_the_night(GetParam())) GTEST_SKIP() << kAtNight;
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(REGRESSIONS_FOLDER)) {
    if (entry.path().extension() != ".txt") continue;
    SCOPED_TRACE(entry.path().stem().string());
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    model::Script script;
    std::string error;
    if (!read_script(text, script, error)) continue;
    const model::Played played = play(script, *model::start_pipeline(script, GetParam()));
    EXPECT_FALSE(played.difference.has_value()) << describe(*played.difference);
    ++count;
  }
  EXPECT_GE(count, 9u);
}

TEST_P(SimulatedGpu, EveryReplyHasItsPlace) {
  if (left_to_the_night(GetParam())) GTEST_SKIP() << kAtNight;
  const uint32_t batches_part = testing_effort(4u, 1u);  // of those between two pauses
  const std::vector<stress::Scenario> all = stress::all_scenarios();
  for (const char* const name : {"calm", "growth", "expiry", "keep-all", "kept-expiry", "large"}) {
    const stress::Scenario* const found = find_scenario(all, name);
    ASSERT_NE(found, nullptr) << name;
    stress::Scenario scenario = *found;
    scenario.batches = std::max(1u, scenario.batches / batches_part);
    stress::Effort effort;
    effort.seconds = testing_effort(0.2, 2.0);
    effort.engine = GetParam();
    // With more, the processors mostly poll on behalf of persistent blocks without work.
    effort.gpu_blocks = testing_effort(4u, effort.gpu_blocks);
    const stress::Report report = run_scenario(scenario, effort);
    for (const std::string& failure : report.failures) ADD_FAILURE() << name << ": " << failure;
    EXPECT_GT(report.operations, 0u) << name;
  }
}

// The driver clears memory asynchronously, and a stream of the engine does not wait for it: a store
// whose tables were cleared after they had been filled lost its limit.
TEST(SimulatedGpuMemory, IsClearWhenItIsTaken) {
  constexpr uint64_t kBytes = 100'000;
  gpu::CudaMemory memory;
  ASSERT_TRUE(memory.allocate(gpu::CudaMemory::Place::kDevice, kBytes));
  EXPECT_EQ(std::count(memory.data(), memory.data() + kBytes, 0), static_cast<long>(kBytes));
}

// Persistent kernels would wait forever for a block that does not fit: they are refused at the
// start.
TEST(SimulatedGpuKernels, PersistentOnesAreRefusedWithoutSpace) {
  gpu::DeviceFaults faults;
  std::unique_ptr<store::CudaStore> store;
  store::CudaStoreConfig config;
  config.block_scratch_bytes = engine::cuda::block_scratch_bytes();
  config.store.memory_limit = uint64_t{32} << 20;
  config.engines = 2;
  config.blocks_per_engine = 200;  // the device takes 256 blocks
  ASSERT_EQ(store::CudaStore::create(config, faults, &store), "");
  engine::cuda::PacketRunnerConfig packets;
  packets.jobs.blocks_max = config.blocks_per_engine;
  packets.jobs.persistent = true;
  request::Counters counters;
  std::unique_ptr<engine::cuda::PacketRunner> made;
  const std::string refusal =
      engine::cuda::PacketRunner::create(packets, *store, faults, counters, &made);
  EXPECT_NE(refusal.find("no space"), std::string::npos) << refusal;
  EXPECT_EQ(made, nullptr);
  packets.jobs.persistent = false;
  EXPECT_EQ(engine::cuda::PacketRunner::create(packets, *store, faults, counters, &made), "");
}

// A device with less memory than the store needs.
class SmallDevice : public testing::Test {
 protected:
  void SetUp() override { (void)setenv("SIMT_GPU_MIB", "64", 1); }
  void TearDown() override { (void)unsetenv("SIMT_GPU_MIB"); }
};

TEST_F(SmallDevice, WhatItDoesNotHoldIsInTheHostsMemory) {
  gpu::DeviceFaults faults;
  std::unique_ptr<store::CudaStore> store;
  store::CudaStoreConfig config;
  config.block_scratch_bytes = engine::cuda::block_scratch_bytes();
  config.store.memory_limit = uint64_t{48} << 20;
  ASSERT_EQ(store::CudaStore::create(config, faults, &store), "");
  EXPECT_EQ(store->host_bytes(), 0u);
  config.store.memory_limit = uint64_t{128} << 20;
  ASSERT_EQ(store::CudaStore::create(config, faults, &store), "");
  EXPECT_GT(store->host_bytes(), uint64_t{128 - 64} << 20);
  EXPECT_LT(store->host_bytes(), uint64_t{128} << 20);
  EXPECT_EQ(store->stats().memory_limit, config.store.memory_limit);
  config.values_on_host = true;
  ASSERT_EQ(store::CudaStore::create(config, faults, &store), "");
  EXPECT_GT(store->host_bytes(), uint64_t{100} << 20);
  config.values_on_host = false;
  config.store.memory_limit = uint64_t{48} << 20;
  config.engines = 2;
  config.engine_bytes = uint64_t{16} << 20;
  ASSERT_EQ(store::CudaStore::create(config, faults, &store), "");
  EXPECT_GE(store->host_bytes(), uint64_t{48 - (64 - 2 * 16)} << 20) << "no space for the engines";
  (void)setenv("SIMT_GPU_MIB", "4", 1);
  EXPECT_NE(store::CudaStore::create(config, faults, &store).find("too few for the index"),
            std::string::npos);
}

TEST_F(SmallDevice, AnswersAsTheModel) {
  const uint32_t rounds = testing_effort(15u, 100u);
  const model::CrowdResult result = model::play_crowd(
      {.players = 4, .rounds = rounds, .messages_max = 50, .engine = RigKind::kCudaLaunch});
  EXPECT_GT(result.commands, 50 * rounds);
  EXPECT_EQ(result.broken, "");
  for (const auto& failure : result.failures) {
    ADD_FAILURE() << describe(failure.difference) << write_script(failure.script);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SimulatedGpu,
                         testing::Values(RigKind::kCudaLaunch, RigKind::kCudaPersistent,
                                         RigKind::kCudaHostValues, RigKind::kCudaEdge),
                         [](const auto& made) { return engine::rig_name(made.param); });

}  // namespace
}  // namespace warpcache
