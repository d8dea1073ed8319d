// SPDX-License-Identifier: Apache-2.0
//
// A connection's requests are answered in order, also in a batch that has only reads: a read must
// not see an older value than an earlier read of the same key.
#include <gtest/gtest.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/testing/effort.h"
#include "base/testing/patience.h"
#include "engine/testing/rig.h"
#include "engine/testing/store_admin.h"
#include "gpu/talker.h"

namespace warpcache::gpu_tests {
namespace {

using engine::RigKind;

const auto kDuration =
    testing_effort(std::chrono::milliseconds(300), std::chrono::milliseconds(2000));
constexpr uint64_t kSeenMin = 10;  // values: however long a slow machine takes to store them
constexpr uint32_t kReads = 200;   // of a batch: most of a slice

class ReadOrderTest : public testing::TestWithParam<RigKind> {
 protected:
  void SetUp() override {
    engine::RigConfig config;
    config.store.memory_limit = config.store.memory_reach = uint64_t{64} << 20;
    config.store.seed = 42;
    config.engines = 2;
    config.gpu_blocks = 2;
    std::string why;
    rig_ = engine::make_rig(GetParam(), config, &why);
    if (rig_ == nullptr) GTEST_SKIP() << why;
    admin_ = std::make_unique<engine::StoreAdmin>(rig_->store());
    reader_ = std::make_unique<Talker>(rig_->make_engine(*admin_));
    writer_ = std::make_unique<Talker>(rig_->make_engine(*admin_));
  }
  void TearDown() override {
    if (rig_ != nullptr) rig_->rest();
  }

  // Stores increasing numbers until stopped.
  void count_up() {
    for (uint64_t number = 1; !ending_; ++number) {
      const std::string text = std::to_string(number);
      writer_->say("set k 0 0 " + std::to_string(text.size()) + "\r\n" + text + "\r\n");
    }
  }

  std::unique_ptr<engine::Rig> rig_;
  std::unique_ptr<engine::StoreAdmin> admin_;
  std::unique_ptr<Talker> reader_;
  std::unique_ptr<Talker> writer_;
  std::atomic<bool> ending_{false};
};

// Removes "VALUE k 0 n\r\nnumber\r\nEND\r\n" from the front of `answers` and returns the number; 0:
// there is none.
uint64_t take_number(std::string_view& answers) {
  const size_t line = answers.find("\r\n");
  const size_t end = answers.find("\r\nEND\r\n");
  if (line == std::string_view::npos || end == std::string_view::npos || end < line) return 0;
  uint64_t number = 0;
  (void)std::from_chars(answers.data() + line + 2, answers.data() + end, number);
  answers.remove_prefix(end + 7);
  return number;
}

TEST_P(ReadOrderTest, LaterReadsOfAKeySeeNothingOlder) {
  writer_->say("set k 0 0 1\r\n1\r\n");
  std::string reads;
  for (uint32_t i = 0; i < kReads; ++i) reads += "get k\r\n";
  std::thread writing([this] { count_up(); });
  uint64_t last = 0;
  uint64_t seen = 0;
  uint64_t backwards = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::steady_clock::now() - begin; };
  while (passed() < kDuration || (seen <= kSeenMin && passed() < kPatience)) {
    const std::string bytes = reader_->say(reads);
    std::string_view answers = bytes;
    for (uint32_t i = 0; i < kReads; ++i) {
      const uint64_t number = take_number(answers);
      EXPECT_NE(number, 0u) << "an answer is missing";
      if (number < last) ++backwards;
      if (number != last) ++seen;
      last = number;
    }
    EXPECT_EQ(answers, "");
    if (HasFailure()) break;
  }
  ending_ = true;
  writing.join();
  EXPECT_EQ(backwards, 0u);
  EXPECT_GT(seen, kSeenMin) << "nothing was stored meanwhile";
}

// An invalidated item offers its recache token to one reader: the first gets it, and the others see
// that it is taken.
TEST_P(ReadOrderTest, TheFirstReadOfAStaleItemWins) {
  std::string reads;
  std::string expected = "HD X W\r\n";
  for (uint32_t i = 0; i < kReads; ++i) reads += "mg k\r\n";
  for (uint32_t i = 1; i < kReads; ++i) expected += "HD Z X\r\n";
  uint64_t rounds = 0;
  uint64_t disordered = 0;
  const auto end = std::chrono::steady_clock::now() + kDuration;
  while (std::chrono::steady_clock::now() < end) {
    ASSERT_EQ(writer_->say("ms k 1\r\n1\r\nmd k I\r\n"), "HD\r\nHD\r\n");
    if (reader_->say(reads) != expected) ++disordered;
    ++rounds;
  }
  EXPECT_EQ(disordered, 0u) << "of " << rounds;
}

INSTANTIATE_TEST_SUITE_P(Engines, ReadOrderTest,
                         testing::Values(RigKind::kCpu, RigKind::kCudaLaunch,
                                         RigKind::kCudaPersistent, RigKind::kCudaEdge),
                         [](const auto& made) { return engine::rig_name(made.param); });

}  // namespace
}  // namespace warpcache::gpu_tests
