// SPDX-License-Identifier: Apache-2.0
//
// Both sides of --frames=peer, with a test in the place of the engine.
#include "io/frames/peer_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "io/frames/peer_client.h"

namespace warpcache::io {
namespace {

using testing::HasSubstr;

constexpr uint32_t kSlotBytes = 128;

class Peers : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/dev/shm/warpcache-peer-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    file_ = folder_ / "frames";
    // The engine's file.
    std::ofstream(file_.string() + ".doorbells") << std::string(peer::kAreasOffset, '\0');
    ASSERT_EQ(PeerPort::open(file_, kSlotBytes, &server_), "");
    buffer_.slots = slots_.data();
    buffer_.times_ns = times_.data();
    buffer_.frames_max = static_cast<uint32_t>(slots_.size());
  }
  void TearDown() override {
    client_.reset();
    server_.reset();
    EXPECT_FALSE(std::filesystem::exists(file_));
    std::filesystem::remove_all(folder_);
  }

  void connect() { ASSERT_EQ(PeerClient::open(file_, &client_), ""); }

  // Prepares a burst, as the worker and an engine do.
  void prepare(FrameBuffer& buffer, uint32_t number) {
    buffer.clear();
    buffer.number = number;
    buffer.frames_max = 8;
    ASSERT_TRUE(server_->receive(buffer, 0));
    ASSERT_EQ(buffer.count, 8U);
    ASSERT_EQ(buffer.peer_slot_bytes, kSlotBytes);
    const uint64_t offset = 512 + uint64_t{number} * 8;
    server_->wait_for_ring(buffer, {&word_, ++value_, offset});
  }

  // Answers each frame with itself, reversed.
  void answer(FrameBuffer& buffer) {
    const uint32_t frames = server_->peer_frames(buffer);
    const MutableBytes arena = server_->reply_memory(buffer.number);
    std::vector<TxFrame> replies;
    for (uint32_t i = 0; i < frames; ++i) {
      uint8_t* const reply = arena.data + size_t{i} * kSlotBytes;
      std::reverse_copy(buffer.data + size_t{i} * kSlotBytes,
                        buffer.data + size_t{i} * kSlotBytes + 4, reply);
      replies.push_back({{reply, 4}, 0, i, false});
    }
    server_->send(buffer.number, replies.data(), frames);
    server_->take_back(buffer);
  }

  void send(std::initializer_list<const char*> texts) {
    std::vector<TxFrame> frames;
    for (const char* text : texts) {
      frames.push_back({{reinterpret_cast<const uint8_t*>(text), std::strlen(text)}, 0, 0, false});
    }
    client_->send(0, frames.data(), static_cast<uint32_t>(frames.size()));
  }

  std::vector<std::string> received() {
    buffer_.clear();
    EXPECT_TRUE(client_->receive(buffer_, 0));
    std::vector<std::string> texts;
    for (uint32_t i = 0; i < buffer_.count; ++i) {
      texts.emplace_back(reinterpret_cast<const char*>(client_->memory().data + slots_[i].offset),
                         slots_[i].size);
    }
    client_->take_back(buffer_);
    return texts;
  }

  std::filesystem::path folder_;
  std::filesystem::path file_;
  std::unique_ptr<FramePort> server_;
  std::unique_ptr<FramePort> client_;
  std::array<net::PacketSlot, 64> slots_;
  std::array<uint64_t, 64> times_;
  FrameBuffer buffer_;
  uint64_t value_ = 0;
  uint64_t word_ = 0;  // the doorbell, where the server sees it
};

TEST_F(Peers, FramesAndRepliesCross) {
  connect();
  FrameBuffer burst;
  prepare(burst, 0);
  send({"abcd", "efgh"});
  EXPECT_EQ(client_->counters().sent.get(), 2U);
  EXPECT_TRUE(received().empty());
  answer(burst);
  EXPECT_THAT(received(), testing::ElementsAre("dcba", "hgfe"));
  EXPECT_TRUE(received().empty());
  EXPECT_EQ(server_->counters().received.get(), 2U);
}

TEST_F(Peers, ABurstThatIsReadIsPreparedAgain) {
  connect();
  FrameBuffer burst;
  for (uint32_t round = 0; round < 3 * peer::kBursts; ++round) {
    prepare(burst, round % 2);
    send({"abcd"});
    answer(burst);
    EXPECT_THAT(received(), testing::ElementsAre("dcba"));
  }
}

TEST_F(Peers, RepliesThatNobodyReadsKeepTheirBurst) {
  connect();
  FrameBuffer burst;
  for (uint32_t number = 0; number < peer::kBursts; ++number) {
    prepare(burst, number);
    send({"abcd"});
    answer(burst);
  }
  burst.clear();
  burst.number = 0;
  ASSERT_TRUE(server_->receive(burst, 0));
  EXPECT_EQ(burst.count, 0U);
  EXPECT_EQ(received().size(), peer::kBursts);
  ASSERT_TRUE(server_->receive(burst, 0));
  EXPECT_NE(burst.count, 0U);
}

TEST_F(Peers, WhatDoesNotFitIsDropped) {
  connect();
  FrameBuffer burst;
  prepare(burst, 0);
  const std::string long_frame(kSlotBytes + 1, 'x');
  send({"abcd", long_frame.c_str(), "efgh"});
  EXPECT_EQ(client_->counters().sent.get(), 2U);
  EXPECT_EQ(client_->counters().send_failed.get(), 1U);
  // The burst is rung, and there is no other.
  send({"ijkl"});
  EXPECT_EQ(client_->counters().send_failed.get(), 2U);
  answer(burst);
  EXPECT_THAT(received(), testing::ElementsAre("dcba", "hgfe"));
}

TEST_F(Peers, ANumberOfFramesThatIsWrongIsBounded) {
  connect();
  FrameBuffer burst;
  prepare(burst, 0);
  auto& control = *reinterpret_cast<peer::Control*>(client_->memory().data + peer::kControlsOffset);
  control.frames = UINT32_MAX;
  EXPECT_EQ(server_->peer_frames(burst), 8U);
}

TEST_F(Peers, AnEngineThatCannotBeRungEndsThePort) {
  FrameBuffer burst;
  burst.frames_max = 8;
  ASSERT_TRUE(server_->receive(burst, 0));
  server_->wait_for_ring(burst, {});
  EXPECT_FALSE(server_->receive(burst, 0));
  EXPECT_THAT(server_->failure(), HasSubstr("cannot be rung"));
}

TEST_F(Peers, AStoppedPortRingsForWhatWaits) {
  FrameBuffer burst;
  prepare(burst, 3);
  server_->rest();
  EXPECT_EQ(word_, 0U);
  server_->stop();
  server_->rest();
  EXPECT_EQ(word_, value_);
  EXPECT_FALSE(server_->receive(burst, 0));
}

TEST_F(Peers, OneServerAFile) {
  std::unique_ptr<FramePort> second;
  EXPECT_THAT(PeerPort::open(file_, kSlotBytes, &second), HasSubstr("another server uses it"));
  struct stat facts = {};
  ASSERT_EQ(stat(file_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST_F(Peers, AClientRefusesOtherFiles) {
  std::unique_ptr<FramePort> none;
  EXPECT_THAT(PeerClient::open(folder_ / "none", &none), HasSubstr("No such file"));
  std::ofstream(folder_ / "other") << std::string(20000, 'x');
  std::ofstream(folder_ / "other.doorbells") << std::string(20000, 'x');
  EXPECT_THAT(PeerClient::open(folder_ / "other", &none), HasSubstr("no file of --frames=peer"));
}

}  // namespace
}  // namespace warpcache::io
