// SPDX-License-Identifier: Apache-2.0
//
// Both sides of --frames=ring in one process, in ordinary memory.
#include "io/frames/dpdk/ring_port.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/patience.h"
#include "io/frames/dpdk/ring_client.h"
#include "io/frames/testing/received.h"

namespace warpcache::io {
namespace {

std::string unique_name() { return "test-" + std::to_string(getpid()); }

class RingTest : public testing::TestWithParam<std::pair<uint32_t, uint32_t>> {
 protected:
  RingTest() : server_(std::make_shared<RingServer>(unique_name(), layout())) {}
  ~RingTest() override {
    peer_memories_.clear();
    peers_.clear();
    end_server();
    (void)munmap(memory_, layout().bytes());
  }

  void SetUp() override {
    memory_ = mmap(nullptr, layout().bytes(), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory_, MAP_FAILED);
    server_->shared = static_cast<uint8_t*>(memory_);
    ring::Layout::header(server_->shared).magic = ring::kMagic;
    ASSERT_EQ(server_->door.take(unique_name()), "");
    ASSERT_EQ(server_->door.open(layout().queues(), layout().ports()), "");
    for (uint32_t port = 0; port < layout().ports(); ++port) {
      ports_.push_back(std::make_unique<RingPort>(server_, port));
    }
    for (auto& port : ports_) memories_.push_back(std::make_unique<FrameMemory>(*port, 256));
    enter();
  }
  static ring::Layout layout() { return {GetParam().first, GetParam().second}; }

  // Lets the ports notice who comes and goes.
  void look() {
    for (size_t i = 0; i < ports_.size(); ++i) {
      FrameBuffer& buffer = memories_[i]->empty();
      (void)ports_[i]->receive(buffer, 1);
      EXPECT_EQ(buffer.count, 0u);
    }
  }
  void enter() {
    const auto peer = std::make_shared<RingPeer>();
    peer->name = unique_name();
    std::thread visitor([&peer] { EXPECT_EQ(peer->visit.enter(peer->name, kPatienceMs), ""); });
    while (server_->door.peer() == 0) look();
    visitor.join();
    look();
    ASSERT_EQ(peer->visit.hello().queues, layout().queues());
    peer->layout = layout();
    peer->shared = server_->shared;
    ASSERT_EQ(await_rings(*peer, layout().queues(), kPatienceMs), "");
    for (uint32_t queue = 0; queue < layout().queues(); ++queue) {
      peers_.push_back(std::make_unique<RingClientPort>(peer, queue));
      peer_memories_.push_back(std::make_unique<FrameMemory>(*peers_.back(), 256));
    }
  }
  void end_server() {
    memories_.clear();
    ports_.clear();
    server_.reset();
  }
  // As if its process had been killed.
  void kill_peer() {
    peer_memories_.clear();
    peers_.clear();
    while (server_->door.peer() != 0) look();
    look();
  }

  RingPort& port_of(uint32_t queue) { return *ports_[layout().port_of(queue)]; }
  FrameMemory& memory_of(uint32_t queue) { return *memories_[layout().port_of(queue)]; }

  // Sends frames to a queue, and returns what its port gets in one burst.
  std::vector<std::string> through(uint32_t queue, const std::vector<std::string>& frames) {
    std::vector<TxFrame> sent;
    for (const std::string& frame : frames) sent.push_back({bytes_of(frame), 0});
    peers_[queue]->send(0, sent.data(), static_cast<uint32_t>(sent.size()));
    return received(queue);
  }
  std::vector<std::string> received(uint32_t queue) {
    std::vector<ReceivedFrame> got;
    burst_ = &memory_of(queue).empty();
    (void)port_of(queue).receive(*burst_, 0);
    memory_of(queue).take(got);
    return texts_of(got);
  }
  // What the peer gets.
  std::vector<std::string> replies(uint32_t queue) {
    std::vector<ReceivedFrame> got;
    (void)peers_[queue]->receive(peer_memories_[queue]->empty(), 0);
    peer_memories_[queue]->take(got);
    std::vector<std::string> texts = texts_of(got);
    (void)peer_memories_[queue]->empty();  // they go back
    return texts;
  }
  static std::vector<std::string> texts_of(const std::vector<ReceivedFrame>& frames) {
    std::vector<std::string> texts;
    for (const ReceivedFrame& frame : frames) texts.push_back(frame.bytes);
    return texts;
  }
  // Replies to a frame of the last burst, in its buffer.
  void reply_beside(uint32_t queue, uint32_t request, const std::string& text) {
    const net::PacketSlot slot = burst_->slots[request];
    uint8_t* const data = port_of(queue).memory().data + slot.offset + (slot.size + 15) / 16 * 16;
    std::copy(text.begin(), text.end(), data);
    const TxFrame frame = {{data, text.size()}, 0, request, true};
    port_of(queue).send(burst_->number, &frame, 1);
  }

  std::shared_ptr<RingServer> server_;
  void* memory_ = MAP_FAILED;
  std::vector<std::unique_ptr<RingPort>> ports_;
  std::vector<std::unique_ptr<FrameMemory>> memories_;
  std::vector<std::unique_ptr<RingClientPort>> peers_;
  std::vector<std::unique_ptr<FrameMemory>> peer_memories_;
  FrameBuffer* burst_ = nullptr;
};

using Texts = std::vector<std::string>;

TEST_P(RingTest, FramesAndReplies) {
  for (uint32_t round = 0; round < 40; ++round) {
    for (uint32_t queue = 0; queue < layout().queues(); ++queue) {
      Texts frames;
      for (int i = 0; i < 100; ++i) {
        frames.push_back("queue " + std::to_string(queue) + " frame " + std::to_string(i));
      }
      ASSERT_EQ(through(queue, frames), frames);
      for (uint32_t i = 0; i < frames.size(); ++i) reply_beside(queue, i, "to " + frames[i]);
      const Texts got = replies(queue);
      ASSERT_EQ(got.size(), frames.size());
      for (size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(got[i], "to " + frames[i]);
    }
  }
  for (const auto& port : ports_) {
    EXPECT_EQ(port->counters().receive_failed.get(), 0u);
    EXPECT_EQ(port->counters().copied_bytes.get(), 0u);
  }
}

TEST_P(RingTest, RepliesFromABlockAndFromElsewhere) {
  ASSERT_EQ(through(0, {"request"}), Texts{"request"});
  const MutableBytes block = port_of(0).reply_memory(burst_->number);
  ASSERT_EQ(block.size, ring::kReplyBlockBytes);
  const std::string text = "in a block";
  std::copy(text.begin(), text.end(), block.data + 4096);
  const TxFrame frame = {{block.data + 4096, text.size()}, 0};
  port_of(0).send(burst_->number, &frame, 1);
  // All blocks are in use: the peer has one, others are given out.
  (void)memory_of(0).empty();
  (void)peers_[0]->receive(peer_memories_[0]->empty(), 0);
  ASSERT_EQ(through(0, {"another"}), Texts{"another"});
  uint32_t given = 0;
  while (!port_of(0).reply_memory(given % kFrameBurstsMax).empty()) ++given;
  EXPECT_EQ(given, ring::kReplyBlocks - 1);
  const std::string copied = "copied";
  const TxFrame other = {bytes_of(copied), 0};
  ASSERT_EQ(through(0, {"third"}), Texts{"third"});
  port_of(0).send(burst_->number, &other, 1);
  EXPECT_EQ(replies(0), Texts{"copied"});
  EXPECT_EQ(port_of(0).counters().copied_bytes.get(), copied.size());
}

TEST_P(RingTest, RepliesBesideTheirRequestsAreSentTogether) {
  constexpr uint32_t kReplyAt = 16;
  ASSERT_EQ(through(0, {"one", "two", "three"}), (Texts{"one", "two", "three"}));
  const Texts texts = {"first", "the second", "3rd"};
  std::vector<net::PacketResult> results;
  for (uint32_t i = 0; i < texts.size(); ++i) {
    uint8_t* const request = port_of(0).memory().data + burst_->slots[i].offset;
    std::copy(texts[i].begin(), texts[i].end(), request + kReplyAt);
    const auto size = static_cast<uint32_t>(texts[i].size());
    results.push_back(net::PacketResult::done_beside(kReplyAt, size));
  }
  RepliesBeside all = {burst_->number, results.data(), 0, 3, 9};
  EXPECT_FALSE(port_of(0).send_beside(all));  // the second is too long
  all.size_max = 10;
  const net::PacketResult last = std::exchange(results[2], net::PacketResult::done(kReplyAt, 3));
  EXPECT_FALSE(port_of(0).send_beside(all));  // the third lies elsewhere
  EXPECT_EQ(replies(0), Texts{});
  results[2] = last;
  EXPECT_TRUE(port_of(0).send_beside(all));
  EXPECT_EQ(replies(0), texts);
  EXPECT_EQ(port_of(0).counters().sent.get(), 3u);
  EXPECT_EQ(port_of(0).counters().sent_bytes.get(), 18u);
  ASSERT_EQ(through(0, {"after"}), Texts{"after"});
  kill_peer();
  RepliesBeside late = {burst_->number, results.data(), 0, 1, 10};
  EXPECT_TRUE(port_of(0).send_beside(late));
  EXPECT_EQ(port_of(0).counters().send_failed.get(), 1u);
}

TEST_P(RingTest, TooLongFramesAreCounted) {
  const std::string longest(ring::kFrameRoom, 'x');
  EXPECT_EQ(through(0, {longest + "x", longest}), Texts{longest});
  EXPECT_EQ(peers_[0]->counters().send_failed.get(), 1u);
  (void)memory_of(0).empty();
  look();
  look();
  EXPECT_EQ(port_of(0).counters().receive_missed.get(), 1u);
}

// What a peer had is the server's again; what the server had is not lost to the next peer.
TEST_P(RingTest, PeersThatVanish) {
  for (int round = 0; round < 30; ++round) {
    for (uint32_t queue = 0; queue < layout().queues(); ++queue) {
      // More than there are buffers, over all rounds.
      for (int burst = 0; burst < 4; ++burst) {
        ASSERT_EQ(through(queue, Texts(200, "request")).size(), 200u);
        for (uint32_t i = 0; i < 200; ++i) reply_beside(queue, i, "reply");
        (void)memory_of(queue).empty();
      }
      // Some are read and not given back, others not even read.
      FrameBuffer& unread = peer_memories_[queue]->empty();
      (void)peers_[queue]->receive(unread, 0);
      EXPECT_EQ(unread.count, 256u);
    }
    // A burst is under way meanwhile.
    ASSERT_EQ(through(0, {"late"}), Texts{"late"});
    const uint64_t failed = port_of(0).counters().send_failed.get();
    FrameMemory other(port_of(0), 8);
    peer_memories_.clear();
    peers_.clear();
    FrameBuffer& second = other.empty();
    second.number = 1;
    while (server_->door.peer() != 0) (void)ports_[0]->receive(second, 1);
    (void)ports_[0]->receive(second, 0);
    reply_beside(0, 0, "nobody reads it");
    EXPECT_EQ(port_of(0).counters().send_failed.get(), failed + 1);
    (void)memory_of(0).empty();
    enter();
    EXPECT_EQ(replies(0), Texts{});
  }
}

// Descriptors of what the peer has not, at random.
TEST_P(RingTest, Garbage) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const uint32_t queue = static_cast<uint32_t>(random() % layout().queues());
    ring::Slot slot = {static_cast<uint32_t>(random()), static_cast<uint32_t>(random())};
    if (random() % 2 == 0) slot.offset %= ring::kBuffers * ring::kBufferBytes;
    if (random() % 2 == 0) slot.offset -= slot.offset % ring::kBufferBytes;
    if (random() % 2 == 0) slot.size %= ring::kFrameRoom + 2;
    if (random() % 4 == 0) (void)peers_[queue]->take_empty(&slot);
    (void)(random() % 2 == 0 ? peers_[queue]->send_slot(slot) : peers_[queue]->return_slot(slot));
    if (random() % 8 != 0) continue;
    for (const std::string& frame : received(queue)) ASSERT_LE(frame.size(), ring::kFrameRoom);
  }
  uint64_t failed = 0;
  for (const auto& port : ports_) failed += port->counters().receive_failed.get();
  EXPECT_GT(failed, 1000u);
  for (auto& memory : memories_) (void)memory->empty();
  // The next peer has all it needs.
  kill_peer();
  enter();
  for (uint32_t queue = 0; queue < layout().queues(); ++queue) {
    ASSERT_EQ(through(queue, {"request"}), Texts{"request"});
    reply_beside(queue, 0, "reply");
    EXPECT_EQ(replies(queue), Texts{"reply"});
  }
}

TEST_P(RingTest, OnePeerAndOneServer) {
  RingVisit second;
  std::thread visitor([&second] {
    EXPECT_EQ(second.enter(unique_name(), 1), "another process is its other side");
  });
  for (int i = 0; i < 100; ++i) look();
  visitor.join();
  RingDoor other;
  EXPECT_EQ(other.take(unique_name()), "another server has it");
  EXPECT_EQ(RingVisit().enter(unique_name() + "-none", 1), "there is no server with it");
  end_server();
  FrameMemory& memory = *peer_memories_[0];
  EXPECT_FALSE(peers_[0]->receive(memory.empty(), kPatienceMs));
  EXPECT_EQ(peers_[0]->failure(), "the server has ended");
}

INSTANTIATE_TEST_SUITE_P(QueuesAndPorts, RingTest,
                         testing::Values(std::pair{1u, 1u}, std::pair{3u, 2u}, std::pair{4u, 1u}),
                         [](const auto& kind) {
                           return std::to_string(kind.param.first) + "By" +
                                  std::to_string(kind.param.second);
                         });

}  // namespace
}  // namespace warpcache::io
