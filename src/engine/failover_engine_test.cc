// SPDX-License-Identifier: Apache-2.0
#include "engine/failover_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/cpu/cpu_engine.h"
#include "engine/testing/engine_without_packets.h"
#include "engine/testing/store_admin.h"
#include "net/testing/packets.h"
#include "protocol/framing/frame.h"
#include "store/testing/store_fixture.h"

namespace warpcache::engine {
namespace {

constexpr const char* kRefused = "SERVER_ERROR out of memory storing object\r\n";
constexpr uint64_t kMemoryBytes = uint64_t{64} << 20;

// An engine whose device fails with its first batch, after it has answered the whole batch.
class FailingEngine final : public EngineWithoutPackets {
 public:
  explicit FailingEngine(bool& failed) : failed_(failed) {}

  uint8_t* input_memory(uint32_t bytes) override {
    input_.resize(bytes);
    return input_.data();
  }
  void submit(Batch* batch) override {
    batch_ = batch;
    for (BatchEntry& entry : batch->entries) {
      entry.frames_done = entry.frame_count;
      entry.authenticated = true;
    }
    failed_ = true;
  }
  Batch* poll() override { return std::exchange(batch_, nullptr); }
  void release(uint32_t) override {}
  Status reserve(uint8_t, uint32_t body_size, uint32_t* id) override {
    body.resize(body_size);
    *id = 1;
    return Status::kOk;
  }
  MutableBytes reservation_window(uint32_t, uint32_t received, uint32_t after) override {
    const uint32_t offset = received + after;
    return {body.data() + offset, body.size() - offset};
  }
  void abandon(uint32_t) override { body.clear(); }

  std::vector<uint8_t> body;  // of the only reservation

 private:
  bool& failed_;
  std::vector<uint8_t> input_;
  Batch* batch_ = nullptr;
};

// A device with a separate store, which fails during a batch.
class FailoverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto primary = std::make_unique<CpuEngine>(CpuEngineConfig{}, *device_store_, device_admin_);
    request::Counters& counters = primary->counters();
    counters_ = &counters;
    FailoverEngine::Hooks hooks;
    hooks.failed = [this] { return failed_; };
    hooks.make_spare = [this](const request::Counters** spare_counters) {
      ++spares_made_;
      if (!has_spare_) return std::unique_ptr<Engine>();
      auto spare = std::make_unique<CpuEngine>(CpuEngineConfig{}, *host_store_, host_admin_);
      *spare_counters = &spare->counters();
      return std::unique_ptr<Engine>(std::move(spare));
    };
    engine_ = std::make_unique<FailoverEngine>(std::move(primary), counters, std::move(hooks));
    input_ = engine_->input_memory(kInputBytes);
  }

  // The reply to `text`, submitted as one batch. With `fails` the device fails before it has
  // finished.
  std::string say(const std::string& text, bool fails = false) {
    std::copy(text.begin(), text.end(), input_);
    protocol::FrameState state = {};
    const protocol::FrameLimits limits = {1 << 20, 1 << 20, true, protocol::kProtocolAuto};
    batch_.input = input_;
    batch_.frames.resize(1000);
    const protocol::FrameResult framed =
        protocol::frame(state, limits, {input_, text.size()}, 0, 0, batch_.frames.data(), 1000);
    batch_.frames.resize(framed.count);
    BatchEntry entry;
    entry.frame_count = framed.count;
    return run(entry, fails);
  }

  std::string run(BatchEntry entry, bool fails) {
    batch_.entries.assign(1, entry);
    engine_->submit(&batch_);
    failed_ = failed_ || fails;
    Batch* done = nullptr;
    for (int i = 0; i < 10 && done == nullptr; ++i) done = engine_->poll();
    EXPECT_EQ(done, &batch_);
    std::string reply;
    const BatchEntry& ended = batch_.entries[0];
    for (uint32_t i = 0; i < ended.span_count; ++i) {
      const ReplySpan& span = batch_.spans[ended.first_span + i];
      reply.append(reinterpret_cast<const char*>(span.data), span.size);
      if (span.pin != 0 && span.pin != kPinFollows) engine_->release(span.pin);
    }
    return reply;
  }

  // The batch is `set a` with a body that was received into a reservation.
  BatchEntry large_store(uint32_t size, uint32_t reservation) {
    const std::string line = "set a 0 0 " + std::to_string(size) + "\r\n";
    std::copy(line.begin(), line.end(), input_);
    batch_.input = input_;
    protocol::Frame frame = {};
    frame.head_size = static_cast<uint16_t>(line.size());
    frame.body_size = size;
    frame.kind = protocol::FrameKind::kTextStore;
    batch_.frames.assign(1, frame);
    BatchEntry entry;
    entry.frame_count = 1;
    entry.reservation = reservation;
    return entry;
  }

  static constexpr uint32_t kInputBytes = 256 * 1024;

  std::unique_ptr<store::Store> device_store_ =
      store::make_store(store::quiet_config(kMemoryBytes));
  std::unique_ptr<store::Store> host_store_ = store::make_store(store::quiet_config(kMemoryBytes));
  StoreAdmin device_admin_{*device_store_};
  StoreAdmin host_admin_{*host_store_};
  const request::Counters* counters_ = nullptr;
  std::unique_ptr<FailoverEngine> engine_;
  uint8_t* input_ = nullptr;
  Batch batch_;
  bool failed_ = false;
  bool has_spare_ = true;
  int spares_made_ = 0;
};

TEST_F(FailoverTest, WithoutAFailureThePrimaryAnswers) {
  EXPECT_EQ(say("set a 0 0 1\r\nx\r\nget a\r\n"), "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
  EXPECT_EQ(spares_made_, 0);
}

TEST_F(FailoverTest, TheBatchUnderWayIsAnsweredByTheSpareAlone) {
  say("set old 0 0 1\r\nx\r\n");
  // The device would have found the key: none of its answers may be sent.
  EXPECT_EQ(say("get old\r\nset a 0 0 1\r\ny\r\nget a\r\n", true),
            "END\r\nSTORED\r\nVALUE a 0 1\r\ny\r\nEND\r\n");
  EXPECT_EQ(say("get old a\r\n"), "VALUE a 0 1\r\ny\r\nEND\r\n");
  EXPECT_EQ(spares_made_, 1);
}

TEST_F(FailoverTest, WhatTheSpareCountsIsAdded) {
  say("get a\r\n");
  say("get a\r\n", true);
  say("get a b\r\n");
  // Two by the primary, one of which the spare repeats, and two more by the spare.
  EXPECT_EQ(counters_->read(request::Counter::kCmdGet), 5u);
}

// One frame for each text, in one burst.
struct TestBurst {
  TestBurst(Engine& engine, const std::vector<std::string>& texts) {
    constexpr uint32_t kSlotBytes = 128;
    burst.input = engine.packet_memory(texts.size() * kSlotBytes);
    burst.replies = engine.packet_memory(kReplyBytes);
    burst.reply_bytes = kReplyBytes;
    burst.results = results.data();
    burst.slot_bytes = kSlotBytes;
    for (const std::string& text : texts) {
      const std::string frame = net::testing::frame_of(std::string("\0\7\0\0\0\1\0\0", 8) + text);
      std::copy(frame.begin(), frame.end(), burst.input + kSlotBytes * burst.count++);
    }
    burst.input_bytes = burst.count * kSlotBytes;
  }
  // The text of a reply of one datagram.
  std::string reply(uint32_t packet) const {
    constexpr size_t kHeaders = 14 + 20 + 8 + 8;
    const net::ReplyFrames frames(burst.replies, results[packet]);
    if (frames.count() != 1) return "";
    const std::string frame(reinterpret_cast<const char*>(frames[0].data), frames[0].size);
    return frame.substr(kHeaders, net::testing::get16(frame, 14 + 20 + 4) - 16u);
  }

  static constexpr uint32_t kReplyBytes = 4096;
  net::PacketBurst burst;
  std::array<net::PacketResult, 8> results = {};
};

// Of two bursts one has been answered when the device fails; the spare runs the other.
TEST_F(FailoverTest, BurstsOfFramesUnderWayAreAnsweredByTheSpare) {
  ASSERT_EQ(engine_->open_packets({net::testing::kTestPort, protocol::kProtocolAuto}), "");
  TestBurst first(*engine_, {"set a 0 0 1\r\nx\r\n", "get a\r\n"});
  engine_->submit_packets(&first.burst);
  EXPECT_EQ(engine_->poll_packets(), &first.burst);
  EXPECT_EQ(first.reply(0), "STORED\r\n");
  EXPECT_EQ(first.reply(1), "VALUE a 0 1\r\nx\r\nEND\r\n");
  TestBurst second(*engine_, {"get a\r\n", "set b 0 0 1\r\ny\r\n", "get b\r\n"});
  engine_->submit_packets(&second.burst);
  failed_ = true;
  EXPECT_EQ(engine_->poll_packets(), &second.burst);
  EXPECT_EQ(second.reply(0), "END\r\n");
  EXPECT_EQ(second.reply(1), "STORED\r\n");
  EXPECT_EQ(second.reply(2), "VALUE b 0 1\r\ny\r\nEND\r\n");
  TestBurst third(*engine_, {"get b\r\n"});
  engine_->submit_packets(&third.burst);
  EXPECT_EQ(engine_->poll_packets(), &third.burst);
  EXPECT_EQ(third.reply(0), "VALUE b 0 1\r\ny\r\nEND\r\n");
  EXPECT_EQ(engine_->poll_packets(), nullptr);
}

TEST_F(FailoverTest, WithoutASpareFramesGetNoReply) {
  has_spare_ = false;
  ASSERT_EQ(engine_->open_packets({net::testing::kTestPort, protocol::kProtocolAuto}), "");
  TestBurst burst(*engine_, {"get a\r\n", "get b\r\n"});
  engine_->submit_packets(&burst.burst);
  failed_ = true;
  EXPECT_EQ(engine_->poll_packets(), &burst.burst);
  EXPECT_EQ(burst.reply(0) + burst.reply(1), "");
  EXPECT_EQ(burst.burst.replies_dropped, 2u);
}

TEST_F(FailoverTest, LargeValuesOfTheSpareAreReleasedThere) {
  failed_ = true;
  const std::string value(100000, 'v');
  EXPECT_EQ(say("set a 0 0 100000\r\n" + value + "\r\nget a\r\n"),
            "STORED\r\nVALUE a 0 100000\r\n" + value + "\r\nEND\r\n");
  EXPECT_EQ(host_store_->stats().pinned_segments, 0u);
}

// It is lost with the device, and no other value of the key may be found.
TEST_F(FailoverTest, ABodyReceivedForThePrimaryIsRefused) {
  const std::string body(300000, 'b');
  uint32_t id = 0;
  ASSERT_EQ(engine_->reserve(1, static_cast<uint32_t>(body.size()), &id), Status::kOk);
  for (uint32_t at = 0; at < body.size();) {
    // The device fails when half of the body has arrived.
    if (at > body.size() / 2) failed_ = true;
    const MutableBytes window = engine_->reservation_window(id, at, 0);
    std::copy_n(body.data() + at, window.size, reinterpret_cast<char*>(window.data));
    at += static_cast<uint32_t>(window.size);
  }
  EXPECT_EQ(run(large_store(static_cast<uint32_t>(body.size()), id), true), kRefused);
  EXPECT_EQ(batch_.entries[0].reservation, id);
  EXPECT_EQ(say("get a\r\n"), "END\r\n");
  EXPECT_EQ(device_store_->stats().reserved_segments, 0u);
  EXPECT_EQ(host_store_->stats().reserved_segments, 0u);
  // Those that come later are the spare's.
  ASSERT_EQ(engine_->reserve(1, static_cast<uint32_t>(body.size()), &id), Status::kOk);
  for (uint32_t at = 0; at < body.size();) {
    const MutableBytes window = engine_->reservation_window(id, at, 0);
    std::copy_n(body.data() + at, window.size, reinterpret_cast<char*>(window.data));
    at += static_cast<uint32_t>(window.size);
  }
  EXPECT_EQ(run(large_store(static_cast<uint32_t>(body.size()), id), false), "STORED\r\n");
  EXPECT_EQ(say("get a\r\n"), "VALUE a 0 300000\r\n" + body + "\r\nEND\r\n");
  EXPECT_EQ(host_store_->stats().reserved_segments, 0u);
}

TEST_F(FailoverTest, ABodyThatTheDeviceHadStoredIsRefusedToo) {
  auto primary = std::make_unique<FailingEngine>(failed_);
  const FailingEngine& failing = *primary;
  request::Counters counters;
  FailoverEngine::Hooks hooks;
  hooks.failed = [this] { return failed_; };
  hooks.make_spare = [this](const request::Counters** spare_counters) {
    auto spare = std::make_unique<CpuEngine>(CpuEngineConfig{}, *host_store_, host_admin_);
    *spare_counters = &spare->counters();
    return std::unique_ptr<Engine>(std::move(spare));
  };
  engine_ = std::make_unique<FailoverEngine>(std::move(primary), counters, std::move(hooks));
  input_ = engine_->input_memory(kInputBytes);
  uint32_t id = 0;
  ASSERT_EQ(engine_->reserve(1, 300000, &id), Status::kOk);
  EXPECT_EQ(run(large_store(300000, id), false), kRefused);
  EXPECT_EQ(say("get a\r\n"), "END\r\n");
  EXPECT_TRUE(failing.body.empty()) << "its space is not free again";
}

TEST_F(FailoverTest, ALoginIsAskedForAgainOnlyIfItWasNotThere) {
  BatchEntry entry;
  const std::string text = "get a\r\n";
  std::copy(text.begin(), text.end(), input_);
  batch_.input = input_;
  batch_.frames.assign(
      1, protocol::Frame{4, 0, 1, protocol::FrameKind::kTextKey, protocol::kKeyLast, 0});
  entry.frame_count = 1;
  entry.authenticated = true;
  EXPECT_EQ(run(entry, true), "END\r\n");
  EXPECT_TRUE(batch_.entries[0].authenticated);
}

TEST_F(FailoverTest, WithoutASpareConnectionsAreClosed) {
  has_spare_ = false;
  EXPECT_EQ(say("get a\r\n", true), "");
  EXPECT_TRUE(batch_.entries[0].close);
  EXPECT_EQ(say("get a\r\n"), "");
  EXPECT_TRUE(batch_.entries[0].close);
  EXPECT_EQ(batch_.entries[0].frames_done, batch_.entries[0].frame_count);
}

}  // namespace
}  // namespace warpcache::engine
