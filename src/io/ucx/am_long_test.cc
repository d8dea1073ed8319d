// SPDX-License-Identifier: Apache-2.0
//
// Long messages, of endpoints that go by TCP alone.
#include "io/ucx/testing/am_transport_fixture.h"

namespace warpcache::io {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kAsks(1, static_cast<char>(kAmAsksForLong));

class AmLongTest : public AmTransportTest {
 protected:
  // Returns the welcome's eager_max.
  uint32_t greet(const std::string& hello) {
    port_.open(0);
    port_.message(0, {.handler = AmHandler::kHello}, hello);
    EXPECT_THAT(receive(), IsEmpty());
    AmWelcome welcome;
    EXPECT_EQ(port_.sent.at(0).data.size(), sizeof welcome);
    std::memcpy(&welcome, port_.sent.at(0).data.data(), sizeof welcome);
    port_.sent.clear();
    return welcome.eager_max;
  }
  void ask() {
    bytes("get k\r\n");
    EXPECT_THAT(receive(), ElementsAre("get k\r\n"));
  }
};

TEST_F(AmLongTest, AreNotForOthers) {
  EXPECT_EQ(greet(""), kAmEagerMax);
  ask();
  const std::string value(20'000, 'v');
  complete({.consumed = 7}, {span(value, 4)});
  ASSERT_EQ(port_.sent.size(), 1u);
  EXPECT_TRUE(port_.sent[0].rendezvous);
}

TEST_F(AmLongTest, AreForClientsThatAsk) {
  EXPECT_EQ(greet(kAsks), kAmLongMax);
  ask();
  const std::string head = "VALUE k 0 20000\r\n";
  const std::string value(20'000, 'v');
  const std::string end = "\r\nEND\r\n";
  complete({.consumed = 7}, {span(head), span(value, 4), span(end)});
  ASSERT_EQ(port_.sent.size(), 1u);
  EXPECT_FALSE(port_.sent[0].rendezvous);
  EXPECT_EQ(port_.sent[0].data, head + value + end);
  EXPECT_THAT(released_, ElementsAre(4));
}

TEST_F(AmLongTest, FollowEachOther) {
  greet(kAsks);
  ask();
  const std::string value(kAmLongMax + 5, 'v');
  const std::string end = "\r\nEND\r\n";
  complete({.consumed = 7}, {span(value, 4), span(end)});
  EXPECT_THAT(sent_texts(), ElementsAre(value.substr(0, kAmLongMax), "vvvvv\r\nEND\r\n"));
  EXPECT_THAT(released_, ElementsAre(4));
}

TEST_F(AmLongTest, LargerValuesGoByRendezvous) {
  greet(kAsks);
  ask();
  const std::string head(100, 'h');
  const std::string value(kAmCopiedByTcpMax + 1, 'v');
  complete({.consumed = 7}, {span(head), span(value, 4), span(head)});
  EXPECT_THAT(sent_texts(), ElementsAre(head, value, head));
  EXPECT_TRUE(port_.sent[1].rendezvous);
  EXPECT_THAT(released_, ElementsAre(4));
}

// In a store of small segments a value comes in many pieces; what counts is its size.
TEST_F(AmLongTest, ThePiecesOfAValueGoTheSameWay) {
  greet(kAsks);
  ask();
  const std::string piece(60'000, 'p');
  const std::string rest(10, 'r');
  complete({.consumed = 7}, {span(piece, kPinFollows), span(piece, kPinFollows), span(rest, 3),
                             span(piece, kPinFollows), span(piece, kPinFollows),
                             span(piece, kPinFollows), span(rest, 4)});
  ASSERT_EQ(port_.sent.size(), 6u);
  std::string copied;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_FALSE(port_.sent[i].rendezvous);
    copied += port_.sent[i].data;
  }
  EXPECT_EQ(copied, piece + piece + rest);
  for (size_t i = 2; i < 5; ++i) EXPECT_TRUE(port_.sent[i].rendezvous);
  EXPECT_FALSE(port_.sent[5].rendezvous);
  EXPECT_THAT(released_, ElementsAre(3, 4));
}

TEST_F(AmLongTest, ARequestMayBeLong) {
  greet(kAsks);
  const std::string set = "set k 0 0 50000\r\n" + std::string(50'000, 'v') + "\r\n";
  bytes(set);
  EXPECT_THAT(receive(), ElementsAre(set));
  complete({.consumed = static_cast<uint32_t>(set.size())});
}

// What it takes counts as unsent output, and is free again however the endpoint ends.
TEST_F(AmLongTest, UnsentOnesAreCountedAndFreed) {
  for (const bool whole : {true, false}) {
    port_.done_at_once = true;
    next_ = 1;
    greet(kAsks);
    ask();
    port_.done_at_once = false;
    const std::string value(50'000, 'v');
    complete({.consumed = 7}, {span(value, 4)});
    EXPECT_EQ(port_.sent.size(), 1u);
    if (whole) port_.finish();
    if (!whole) port_.forgets = true;
    port_.fail(0);
    for (int i = 0; i < 4; ++i) EXPECT_THAT(receive(), IsEmpty());
    EXPECT_EQ(transport_.stream_count(), 0u);
    port_.sent.clear();
    port_.closed.clear();
  }
}

}  // namespace
}  // namespace warpcache::io
