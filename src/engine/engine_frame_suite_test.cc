// SPDX-License-Identifier: Apache-2.0
//
// Every engine with Ethernet frames (testing/engine_suite.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/replies.h"
#include "engine/testing/engine_suite.h"
#include "net/testing/packets.h"

namespace warpcache::engine {
namespace {

using std::chrono::steady_clock;

const std::string kUdpHeader("\x12\x34\0\0\0\1\0\0", 8);  // of a request of one datagram

// Each burst has its own memory; frames of all kinds share it.
struct TestBurst {
  static constexpr uint32_t kSlotBytes = 256;
  static constexpr uint32_t kReplyBytes = 256 * 1024;

  TestBurst(Engine& engine, uint32_t frames) : frames_max(frames) {
    burst.input = engine.packet_memory(uint64_t{frames} * kSlotBytes);
    burst.replies = engine.packet_memory(kReplyBytes);
    burst.results =
        reinterpret_cast<net::PacketResult*>(engine.packet_memory(frames * sizeof(uint32_t)));
    slots =
        reinterpret_cast<net::PacketSlot*>(engine.packet_memory(frames * sizeof(net::PacketSlot)));
    burst.slots = slots;
    burst.reply_bytes = kReplyBytes;
  }
  void add(const std::string& frame) {
    ASSERT_TRUE(burst.count < frames_max && frame.size() <= kSlotBytes);
    const uint32_t at = burst.count * kSlotBytes;
    std::copy(frame.begin(), frame.end(), burst.input + at);
    slots[burst.count++] = {at, static_cast<uint32_t>(frame.size())};
    burst.input_bytes = burst.count * kSlotBytes;
  }
  // The text of a reply of one datagram.
  std::string reply(uint32_t packet) const {
    const net::ReplyFrames frames(burst, packet);
    if (frames.count() != 1) return std::to_string(frames.count()) + " frames";
    const std::string frame(reinterpret_cast<const char*>(frames[0].data), frames[0].size);
    const size_t payload = net::testing::l4_offset_of(frame) + 8;
    const size_t size = net::testing::get16(frame, payload - 4) - 8u;
    return frame.substr(payload + 8, size - 8);
  }

  net::PacketBurst burst;
  net::PacketSlot* slots;
  uint32_t frames_max;
};

class EngineFrameSuite : public EngineSuite {
 protected:
  void SetUp() override {
    EngineSuite::SetUp();
    if (rig_ == nullptr) return;
    frames_ = &rig_->make_engine(admin_);
    ASSERT_EQ(frames_->open_packets({net::testing::kTestPort, 0}), "");
    for (uint32_t i = 0; i < frames_->packet_bursts(); ++i)
      bursts_.push_back(std::make_unique<TestBurst>(*frames_, 200));
  }

  net::PacketBurst* wait_for_frames() {
    const auto end = steady_clock::now() + kPatience;
    net::PacketBurst* done = nullptr;
    while (done == nullptr && steady_clock::now() < end) done = frames_->poll_packets();
    return done;
  }

  static std::string frame(const std::string& text) {
    return net::testing::frame_of(kUdpHeader + text);
  }

  Engine* frames_ = nullptr;
  std::vector<std::unique_ptr<TestBurst>> bursts_;
};

// Usual frames, others, those that the host runs, and those that are for nobody.
TEST_P(EngineFrameSuite, SeveralBurstsAreUnderWay) {
  constexpr uint32_t kKeys = 20;
  for (int round = 0; round < 3; ++round) {
    std::set<net::PacketBurst*> under_way;
    for (size_t b = 0; b < bursts_.size(); ++b) {
      net::PacketBurst& burst = bursts_[b]->burst;
      burst.count = 0;
      for (uint32_t i = 0; i < kKeys; ++i) {
        const std::string key = "b" + std::to_string(b) + "k" + std::to_string(i);
        bursts_[b]->add(frame(round == 0 ? set(key, key) : "get " + key + "\r\n"));
        bursts_[b]->add(frame("mn\r\n"));
        bursts_[b]->add(frame("verbosity 1\r\n"));
        bursts_[b]->add("no frame at all");
      }
      frames_->submit_packets(&burst);
      under_way.insert(&burst);
    }
    while (!under_way.empty()) {
      net::PacketBurst* const done = wait_for_frames();
      ASSERT_EQ(under_way.erase(done), 1u) << "null, or no burst of these";
    }
    EXPECT_EQ(frames_->poll_packets(), nullptr);
    for (size_t b = 0; b < bursts_.size(); ++b) {
      const TestBurst& burst = *bursts_[b];
      EXPECT_EQ(burst.burst.replies_dropped, 0u);
      for (uint32_t i = 0; i < kKeys; ++i) {
        const std::string key = "b" + std::to_string(b) + "k" + std::to_string(i);
        EXPECT_EQ(burst.reply(4 * i), round == 0 ? "STORED\r\n" : value_reply(key, key));
        EXPECT_EQ(burst.reply(4 * i + 1), "MN\r\n");
        const std::string admin = burst.reply(4 * i + 2);
        EXPECT_TRUE(admin == "ADMIN\r\n" || admin == kDatagramBusy) << admin;
        EXPECT_EQ(burst.burst.results[4 * i + 3].state(), net::PacketState::kDropped);
      }
    }
  }
}

// Frames and messages act on one store.
TEST_P(EngineFrameSuite, MessagesSeeWhatFramesHaveStored) {
  TestBurst& burst = *bursts_[0];
  say(set("m", "of messages"));
  burst.add(frame(set("f", "of frames")));
  burst.add(frame("get m\r\n"));
  frames_->submit_packets(&burst.burst);
  ASSERT_EQ(wait_for_frames(), &burst.burst);
  EXPECT_EQ(burst.reply(0), "STORED\r\n");
  EXPECT_EQ(burst.reply(1), value_reply("m", "of messages"));
  frames_->release_device();
  EXPECT_EQ(say("get f\r\n"), value_reply("f", "of frames"));
}

// One key or several a frame, and commands of the general path.
TEST_P(EngineFrameSuite, FlushedPrefixesAreMisses) {
  for (const char* const key : {"a:1", "a:2", "a:3", "b:1"}) say(set(key, "v"));
  const auto ask = [&] {
    TestBurst& burst = *bursts_[0];
    burst.burst.count = 0;
    for (const char* const text :
         {"get a:1\r\n", "get b:1\r\n", "get a:1 a:2 b:1\r\n", "gets a:3 a:2\r\n", "mg a:1 v\r\n",
          "get a:1 nothing\r\n", "incr a:1 1\r\n"}) {
      burst.add(frame(text));
    }
    frames_->submit_packets(&burst.burst);
    ASSERT_EQ(wait_for_frames(), &burst.burst);
  };
  // Before the sweep, after it, and with a later flush.
  for (uint32_t round = 0; round < 3; ++round) {
    const std::string prefix = round == 2 ? "c:" : "a:";
    ASSERT_EQ(rig_->store().flush_prefix(bytes_of(prefix)), Status::kOk);
    for (uint32_t i = 0; i < round * 2; ++i) {
      rig_->rest();
      rig_->store().set_clock(rig_->store().clock().now + 1);
    }
    ask();
    const TestBurst& burst = *bursts_[0];
    EXPECT_EQ(burst.reply(0), "END\r\n");
    EXPECT_EQ(burst.reply(1), value_reply("b:1", "v"));
    EXPECT_EQ(burst.reply(2), value_reply("b:1", "v"));
    EXPECT_EQ(burst.reply(3), "END\r\n");
    EXPECT_EQ(burst.reply(4), "EN\r\n");
    EXPECT_EQ(burst.reply(5), "END\r\n");
    EXPECT_EQ(burst.reply(6), "NOT_FOUND\r\n");
  }
  EXPECT_EQ(say(set("a:1", "w")), "STORED\r\n");
  ask();
  EXPECT_EQ(bursts_[0]->reply(0), value_reply("a:1", "w"));
  EXPECT_EQ(bursts_[0]->reply(5), value_reply("a:1", "w"));
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineFrameSuite, kAllEngines, name_of);

}  // namespace
}  // namespace warpcache::engine
