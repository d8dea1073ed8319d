// SPDX-License-Identifier: Apache-2.0
#include "admin/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/engine.h"
#include "protocol/framing/frame.h"

namespace warpcache::admin {
namespace {

using ::testing::HasSubstr;

TEST(TimeHistogram, StepsCoverAllTimes) {
  EXPECT_EQ(TimeHistogram::step_of(0), 0u);
  EXPECT_EQ(TimeHistogram::step_of(999), 0u);
  EXPECT_EQ(TimeHistogram::step_of(1000), 1u);
  EXPECT_EQ(TimeHistogram::step_of(UINT64_MAX / 8), TimeHistogram::kSteps - 1);
  for (uint32_t step = 0; step + 1 < TimeHistogram::kSteps; ++step) {
    const uint64_t end = TimeHistogram::end_of(step);
    EXPECT_EQ(TimeHistogram::step_of(end), step + 1) << step;
    EXPECT_EQ(TimeHistogram::step_of(end - 1), step) << step;
  }
}

TEST(TimeHistogram, Quantiles) {
  TimeHistogram times;
  EXPECT_EQ(times.quantile_ns(0.5), 0u);
  times.add(TimeHistogram::step_of(10'000), 99, 0);
  times.add(TimeHistogram::step_of(1'000'000), 1, 0);
  EXPECT_EQ(times.quantile_ns(0.5), TimeHistogram::end_of(TimeHistogram::step_of(10'000)));
  EXPECT_EQ(times.quantile_ns(0.99), TimeHistogram::end_of(TimeHistogram::step_of(10'000)));
  EXPECT_EQ(times.quantile_ns(1.0), TimeHistogram::end_of(TimeHistogram::step_of(1'000'000)));
}

// A batch of one connection with the frames of `text`, all done.
class Framed {
 public:
  explicit Framed(std::string text, bool authenticated = true) : text_(std::move(text)) {
    batch.input = reinterpret_cast<uint8_t*>(text_.data());
    batch.frames.resize(16);
    protocol::FrameState state{};
    const protocol::FrameLimits limits{1 << 20, 1 << 20, true, protocol::kProtocolAuto};
    const protocol::FrameResult framed =
        protocol::frame(state, limits, {batch.input, text_.size()}, 0, 0, batch.frames.data(), 16);
    batch.frames.resize(framed.count);
    engine::BatchEntry entry;
    entry.frame_count = entry.frames_done = framed.count;
    entry.authenticated = authenticated;
    entry.fd = 7;
    batch.entries.push_back(entry);
  }
  engine::Batch batch;

 private:
  std::string text_;
};

TEST(Timings, CommandsAreCountedByName) {
  Timings timings(true, 0);
  EXPECT_TRUE(timings.wanted());
  timings.burst_ended(
      Framed("get a b\r\nset c 0 0 1\r\nx\r\nmg d v\r\ncas e 0 0 1 9\r\nx\r\ngat 1 f\r\nmn\r\n")
          .batch,
      5000);
  const std::string_view binary("\x80\x04\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0k", 25);
  timings.burst_ended(Framed(std::string(binary)).batch, 6000);
  const auto count = [&](CommandClass command) { return timings.histogram(command).total; };
  EXPECT_EQ(count(CommandClass::kGet), 2u);
  for (const CommandClass once :
       {CommandClass::kSet, CommandClass::kMetaGet, CommandClass::kCas, CommandClass::kGat,
        CommandClass::kOther, CommandClass::kDelete}) {
    EXPECT_EQ(count(once), 1u) << kCommandNames[static_cast<size_t>(once)];
  }
  EXPECT_EQ(timings.histogram(CommandClass::kGet).total_ns, 10'000u);
  EXPECT_EQ(timings.batch_sizes()[3], 1u);  // seven requests
  EXPECT_EQ(timings.batch_sizes()[0], 1u);
  timings.reset();
  EXPECT_EQ(count(CommandClass::kGet), 0u);
}

TEST(Timings, OffIsNotWanted) {
  Timings timings(false, 0);
  EXPECT_FALSE(timings.wanted());
  timings.set_slow_us(10);
  EXPECT_TRUE(timings.wanted());
  timings.set_slow_us(0);
  EXPECT_FALSE(timings.wanted());
  timings.set_enabled(true);
  EXPECT_TRUE(timings.wanted());
}

TEST(Timings, SlowBurstsAreKeptWithoutValues) {
  Timings timings(false, 100);
  timings.burst_ended(Framed("get quick\r\n").batch, 99'000);
  timings.burst_ended(Framed("set slow 0 0 6\r\nsecret\r\n").batch, 100'000);
  ASSERT_EQ(timings.slow_bursts().size(), 1u);
  EXPECT_EQ(timings.slow_bursts()[0].command, "set slow 0 0 6");
  EXPECT_EQ(timings.slow_bursts()[0].fd, 7);
  timings.burst_ended(Framed("get password\r\n", false).batch, 200'000);
  EXPECT_EQ(timings.slow_bursts()[1].command, "(before a login)");
  for (size_t i = 0; i < 2 * Timings::kSlowBurstsMax; ++i) {
    timings.burst_ended(Framed("get more\r\n").batch, 200'000);
  }
  EXPECT_EQ(timings.slow_bursts().size(), Timings::kSlowBurstsMax);
}

TEST(HotKeys, TheMostRequestedIsFirstAmongManyOthers) {
  HotKeys keys(true);
  for (int i = 0; i < 20'000; ++i) {
    keys.saw("rare" + std::to_string(i), false);
    if (i % 20 == 0) keys.saw("hot", true);
    if (i % 40 == 0) keys.saw("warm", false);
  }
  const auto top = keys.top();
  ASSERT_EQ(top.size(), HotKeys::kShownMax);
  EXPECT_EQ(top[0].key, "hot");
  EXPECT_EQ(top[1].key, "warm");
  EXPECT_GE(top[0].requests, 1000u * HotKeys::kBatchesPerSample);
  EXPECT_LE(top[0].at_least, 1000u * HotKeys::kBatchesPerSample);
  EXPECT_EQ(top[0].hits, top[0].at_least);
  keys.set_enabled(true);
  EXPECT_TRUE(keys.top().empty());
}

TEST(HotKeys, SomeBatchesAreTaken) {
  HotKeys on(true);
  int taken = 0;
  for (int i = 0; i < 16'000; ++i) {
    taken += on.takes_batch() ? 1 : 0;
  }
  EXPECT_GT(taken, 500);
  EXPECT_LT(taken, 2000);
}

}  // namespace
}  // namespace warpcache::admin
