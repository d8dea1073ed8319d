// SPDX-License-Identifier: Apache-2.0
//
// What every transport must do (transport.h), seen by a worker and by its clients. A transport
// joins with a Link (testing/transport_links.h), which has its clients. What only one of them has
// is in its own tests. Ports of frames have such a suite too: frames/frame_port_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/byte_pipe.h"
#include "base/testing/patience.h"
#include "io/testing/transport_links.h"
#include "io/transport.h"

namespace warpcache::io {
namespace {

using std::chrono::steady_clock;

std::string pattern(size_t size) {
  std::string bytes(size, ' ');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>('a' + i / 7 % 26);
  return bytes;
}

// Plays the worker.
class TransportSuite : public testing::TestWithParam<LinkKind>,
                       private SessionObserver,
                       private PinReleaser {
 protected:
  TransportSuite() {
    for (size_t i = 0; i < bursts_.size(); ++i) {
      memory_[i] = std::make_unique<uint8_t[]>(kArena);
      bursts_[i].number = static_cast<uint32_t>(i);
      bursts_[i].arena = {memory_[i].get(), kArena, 0};
    }
    transport().attach(*this, *this);
  }
  ~TransportSuite() override {
    link_->stop();
    const auto end = steady_clock::now() + kPatience;
    while (receive(0) && steady_clock::now() < end) {
      for (const RxChunk& chunk : bursts_[0].chunks) complete(chunk, {.consumed = chunk.size});
    }
    EXPECT_EQ(open_, 0) << "sessions were not closed";
  }

  Transport& transport() { return link_->transport(); }

  bool receive(uint32_t burst, int timeout_ms = 1) {
    bursts_[burst].arena.used = 0;
    bursts_[burst].chunks.clear();
    return transport().receive(bursts_[burst], timeout_ms);
  }
  // The next chunk, which comes alone; null: none comes.
  const RxChunk* chunk(uint32_t burst = 0) {
    const auto end = steady_clock::now() + kPatience;
    while (steady_clock::now() < end) {
      EXPECT_TRUE(receive(burst));
      for (uint32_t client = 0; client < connected_; ++client)
        texts_[client] += link_->take(client);
      if (bursts_[burst].chunks.empty()) continue;
      EXPECT_EQ(bursts_[burst].chunks.size(), 1u);
      return &bursts_[burst].chunks[0];
    }
    ADD_FAILURE() << "no chunk comes";
    return nullptr;
  }
  std::string text_of(const RxChunk& chunk, uint32_t burst = 0) {
    return {reinterpret_cast<const char*>(bursts_[burst].arena.data + chunk.offset), chunk.size};
  }
  void complete(const RxChunk& chunk, const RxNext& next, const std::vector<ReplySpan>& spans = {},
                uint32_t burst = 0) {
    const Completion completion = {&chunk, &next, spans.data(),
                                   static_cast<uint32_t>(spans.size())};
    transport().complete(bursts_[burst], &completion, 1);
  }
  // Several looks find nothing to deliver.
  bool nothing_comes(uint32_t burst = 0) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(receive(burst));
      if (!bursts_[burst].chunks.empty()) return false;
    }
    return true;
  }
  bool eventually(const std::function<bool()>& condition) {
    const auto end = steady_clock::now() + kPatience;
    while (!condition() && steady_clock::now() < end) {
      EXPECT_TRUE(receive(1));
      EXPECT_TRUE(bursts_[1].chunks.empty());
      for (uint32_t client = 0; client < connected_; ++client)
        texts_[client] += link_->take(client);
    }
    return condition();
  }
  uint32_t connect() {
    const uint32_t client = link_->connect();
    connected_ = client + 1;
    EXPECT_TRUE(eventually([&] { return open_ == static_cast<int>(connected_) - closed_; }));
    return client;
  }
  static ReplySpan span(const std::string& text, uint32_t pin = 0) {
    return {reinterpret_cast<const uint8_t*>(text.data()), static_cast<uint32_t>(text.size()), pin};
  }

  void opened(SessionStorage& session, int) override {
    ++open_;
    for (const uint8_t byte : session.bytes) EXPECT_EQ(byte, 0);
  }
  void closed(SessionStorage&, CloseReason) override {
    --open_;
    ++closed_;
  }
  bool holds_body(const SessionStorage&) const override { return false; }
  void cancel_body(SessionStorage&) override {}
  MutableBytes body_window(const SessionStorage&, uint32_t) override { return {}; }
  void release(uint32_t pin) override { released_.push_back(pin); }

  static constexpr uint32_t kArena = 4 * kChunkBytesMax;
  std::unique_ptr<Link> link_ = make_link(GetParam());
  std::array<std::unique_ptr<uint8_t[]>, 2> memory_;
  std::array<RxBurst, 2> bursts_;
  std::vector<uint32_t> released_;
  std::map<uint32_t, std::string> texts_;  // what clients have got
  uint32_t connected_ = 0;
  int open_ = 0;
  int closed_ = 0;
};

TEST_P(TransportSuite, BytesComeOnceAndInOrder) {
  const uint32_t client = connect();
  const std::string sent = pattern(200'000);
  std::string got;
  size_t next = 0;
  for (size_t size = 1; got.size() < sent.size(); size = size * 3 % 20'011 + 1) {
    if (next < sent.size()) link_->send(client, sent.substr(next, size));
    next += size;
    const RxChunk* const one = chunk();
    ASSERT_NE(one, nullptr);
    EXPECT_LE(one->size, kChunkBytesMax);
    EXPECT_FALSE(one->datagram);
    // Sometimes the end is left over, and comes again before what follows.
    const uint32_t used = got.size() % 2 == 0 ? one->size : (one->size + 1) / 2;
    got += text_of(*one).substr(0, used);
    complete(*one, {.consumed = used, .more_now = used < one->size});
  }
  EXPECT_TRUE(got == sent);
  EXPECT_TRUE(nothing_comes());
}

TEST_P(TransportSuite, WhatIsLeftOverWaitsForNewBytes) {
  const uint32_t client = connect();
  link_->send(client, "get a\r\nge");
  const RxChunk* one = chunk();
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(text_of(*one), "get a\r\nge");
  complete(*one, {.consumed = 7});
  EXPECT_TRUE(nothing_comes());
  link_->send(client, "t b\r\n");
  one = chunk();
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(text_of(*one), "get b\r\n");
  complete(*one, {.consumed = 0, .need = 10});
  link_->send(client, "12");
  EXPECT_TRUE(nothing_comes());
  link_->send(client, "3456");
  one = chunk();
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(text_of(*one), "get b\r\n123456");
  complete(*one, {.consumed = one->size});
}

TEST_P(TransportSuite, MoreNowDeliversWithoutNewBytes) {
  const uint32_t client = connect();
  link_->send(client, "abcdef");
  std::string seen;
  for (int i = 0; i < 6; ++i) {
    const RxChunk* const one = chunk();
    ASSERT_NE(one, nullptr);
    seen += text_of(*one) + " ";
    complete(*one, {.consumed = 1, .more_now = i < 5});
  }
  EXPECT_EQ(seen, "abcdef bcdef cdef def ef f ");
  EXPECT_TRUE(nothing_comes());
}

TEST_P(TransportSuite, AStreamIsInOneBurstAtATime) {
  const uint32_t first = connect();
  const uint32_t second = connect();
  link_->send(first, "one");
  const RxChunk* const one = chunk(0);
  ASSERT_NE(one, nullptr);
  link_->send(first, "two");
  EXPECT_TRUE(nothing_comes(1));
  link_->send(second, "other");
  const RxChunk* const other = chunk(1);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(text_of(*other, 1), "other");
  EXPECT_NE(other->connection_id, one->connection_id);
  EXPECT_NE(other->session, one->session);
  complete(*other, {.consumed = 5}, {}, 1);
  complete(*one, {.consumed = 2});
  const RxChunk* const rest = chunk(1);
  ASSERT_NE(rest, nullptr);
  EXPECT_EQ(text_of(*rest, 1), "etwo");
  complete(*rest, {.consumed = 4}, {}, 1);
}

TEST_P(TransportSuite, EachClientGetsItsOwnReplies) {
  constexpr uint32_t kClients = 20;
  for (uint32_t i = 0; i < kClients; ++i) connect();
  std::string expected[kClients];
  for (int round = 0; round < 10; ++round) {
    for (uint32_t i = 0; i < kClients; ++i) link_->send(i, "hello " + std::to_string(i));
    uint32_t answered = 0;
    while (answered < kClients) {
      ASSERT_TRUE(receive(0));
      std::vector<Completion> completions;
      std::vector<RxNext> nexts(bursts_[0].chunks.size());
      std::vector<std::string> replies(bursts_[0].chunks.size());
      std::vector<ReplySpan> spans(bursts_[0].chunks.size());
      for (size_t i = 0; i < nexts.size(); ++i) {
        const RxChunk& one = bursts_[0].chunks[i];
        nexts[i].consumed = one.size;
        replies[i] = "you said " + text_of(one) + ".";
        spans[i] = span(replies[i]);
        completions.push_back({&one, &nexts[i], &spans[i], 1});
      }
      transport().complete(bursts_[0], completions.data(),
                           static_cast<uint32_t>(completions.size()));
      answered += static_cast<uint32_t>(nexts.size());
    }
    for (uint32_t i = 0; i < kClients; ++i)
      expected[i] += "you said hello " + std::to_string(i) + ".";
  }
  for (uint32_t i = 0; i < kClients; ++i)
    EXPECT_TRUE(eventually([&] { return texts_[i] == expected[i]; })) << texts_[i];
}

// Pieces of the arena and pinned ones, to a client that does not read for a while.
TEST_P(TransportSuite, ASlowReaderGetsAllAndIsNotReadMeanwhile) {
  const uint32_t client = connect();
  link_->send(client, "get");
  const RxChunk* const one = chunk();
  ASSERT_NE(one, nullptr);
  link_->set_reading(client, false);
  const std::string head = "VALUE\r\n";
  const std::string first(3'000'000, 'p');
  const std::string second(4'000'000, 'q');
  const std::string tail = "\r\nEND\r\n";
  std::string copied = head;  // the arena is used again after complete()
  complete(*one, {.consumed = one->size},
           {span(copied), span(first, kPinFollows), span(second, 7), span(tail)});
  std::fill(copied.begin(), copied.end(), '!');
  link_->send(client, "next");
  EXPECT_TRUE(nothing_comes());
  EXPECT_TRUE(released_.empty());
  link_->set_reading(client, true);
  const RxChunk* const next = chunk();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(text_of(*next), "next");
  EXPECT_EQ(released_, std::vector<uint32_t>{7});
  complete(*next, {.consumed = 4});
  const std::string all = head + first + second + tail;
  EXPECT_TRUE(eventually([&] { return texts_[client].size() >= all.size(); }));
  EXPECT_TRUE(texts_[client] == all);
}

TEST_P(TransportSuite, TheReplyLeavesBeforeTheEnd) {
  const uint32_t client = connect();
  link_->send(client, "quit");
  const RxChunk* const one = chunk();
  ASSERT_NE(one, nullptr);
  const std::string reply(100'000, 'r');
  complete(*one, {.consumed = 4, .close = true}, {span(reply)});
  EXPECT_TRUE(eventually([&] { return link_->is_closed(client) && open_ == 0; }));
  EXPECT_TRUE(texts_[client] == reply);
  EXPECT_EQ(closed_, 1);
}

TEST_P(TransportSuite, ClientsThatGoEndTheirSessions) {
  const uint32_t first = connect();
  const uint32_t second = connect();
  link_->send(first, "unanswered");
  const RxChunk* const one = chunk();
  ASSERT_NE(one, nullptr);
  link_->close(first);
  // The worker still has a chunk of it.
  EXPECT_TRUE(nothing_comes(1));
  EXPECT_EQ(open_, 2);
  const std::string reply = "reply";
  complete(*one, {.consumed = one->size}, {span(reply, 3)});
  EXPECT_TRUE(eventually([&] { return open_ == 1; }));
  EXPECT_EQ(released_, std::vector<uint32_t>{3});
  connected_ = 0;  // nobody asks the first one
  link_->close(second);
  EXPECT_TRUE(eventually([&] { return open_ == 0; }));
}

TEST_P(TransportSuite, ABodyGoesToItsPlace) {
  const uint32_t client = connect();
  const std::string body = pattern(150'000);
  link_->send(client, "set");
  const RxChunk* one = chunk();
  ASSERT_NE(one, nullptr);
  std::string store(body.size(), '.');
  auto* const place = reinterpret_cast<uint8_t*>(store.data());
  const size_t cut = 70'000;  // the store has it in two pieces
  link_->send(client, body + "\r\nget");
  size_t received = 0;
  std::string after;
  RxNext next = {.consumed = 3, .body = {place, cut}};
  while (after != "\r\nget") {
    complete(*one, next);
    one = chunk();
    ASSERT_NE(one, nullptr);
    received += one->body_received;
    ASSERT_LE(received, body.size());
    EXPECT_TRUE(one->size == 0 || received == body.size());
    after += text_of(*one);
    next = {.consumed = one->size};
    if (received == body.size()) continue;
    const size_t end = received < cut ? cut : body.size();
    next.body = {place + received, end - received};
    next.body_ends = end == body.size();
  }
  EXPECT_TRUE(store == body);
  complete(*one, {.consumed = one->size});
}

TEST_P(TransportSuite, ALongReplyKeepsItsPlace) {
  const uint32_t client = connect();
  link_->send(client, "dump");
  const RxChunk* const one = chunk();
  ASSERT_NE(one, nullptr);
  BytePipe pipe(4096, [] {});
  const std::string before = "before ";
  complete(*one, {.consumed = 4, .long_reply = &pipe}, {span(before)});
  link_->send(client, "next");
  std::string all = before;
  for (int i = 0; i < 20; ++i) {
    const std::string piece = "piece " + std::to_string(i) + " ";
    ASSERT_EQ(pipe.write(bytes_of(piece)), piece.size());
    all += piece;
    EXPECT_TRUE(eventually([&] { return texts_[client] == all; })) << texts_[client];
  }
  pipe.end(true);
  const RxChunk* const next = chunk();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(text_of(*next), "next");
  EXPECT_TRUE(pipe.reader_left());
  complete(*next, {.consumed = 4});
  EXPECT_EQ(texts_[client], all);
}

TEST_P(TransportSuite, WakeEndsTheWait) {
  connect();
  // Whichever comes first, the wait or the call: it ends.
  std::thread other([this] { transport().wake(); });
  const auto begin = steady_clock::now();
  EXPECT_TRUE(receive(0, 60'000));
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(50));
  other.join();
}

TEST_P(TransportSuite, OthersGoOnBesideAStreamThatComesLater) {
  const uint32_t first = connect();
  const uint32_t second = connect();
  link_->send(first, "busy");
  const RxChunk* one = chunk();
  ASSERT_NE(one, nullptr);
  complete(*one, {.consumed = 0, .more_now = true, .later = true});
  link_->send(second, "get");
  bool first_came = false;
  bool second_came = false;
  const auto end = steady_clock::now() + kPatience;
  while (!(first_came && second_came) && steady_clock::now() < end) {
    ASSERT_TRUE(receive(0));
    for (const RxChunk& came : bursts_[0].chunks) {
      const std::string text = text_of(came);
      first_came = first_came || text == "busy";
      second_came = second_came || text == "get";
      complete(came, {.consumed = came.size});
    }
  }
  EXPECT_TRUE(first_came && second_came);
}

std::string name_of(const testing::TestParamInfo<LinkKind>& info) { return link_name(info.param); }

INSTANTIATE_TEST_SUITE_P(All, TransportSuite,
                         testing::Values(LinkKind::kTcp, LinkKind::kUnix,
                                         LinkKind::kUnixBesideMessages, LinkKind::kMessages),
                         name_of);

}  // namespace
}  // namespace warpcache::io
