// SPDX-License-Identifier: Apache-2.0
#include "io/ucx/am_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "io/ucx/testing/am_transport_fixture.h"

namespace warpcache::io {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(AmTransportTest, MessagesOfOneRoundAreOneChunkAndRepliesOneMessage) {
  open();
  bytes("get a\r\n");
  bytes("get b\r\n");
  EXPECT_THAT(receive(), ElementsAre("get a\r\nget b\r\n"));
  const std::string first = "END\r\n";
  const std::string second = "VALUE";
  complete({.consumed = 14}, {span(first), span(second)});
  EXPECT_THAT(sent_texts(), ElementsAre("END\r\nVALUE"));
  EXPECT_EQ(port_.sent[0].header.taken, 14u);
  EXPECT_EQ(port_.sent[0].header.sequence, 1u);  // 0 was the welcome
}

TEST_F(AmTransportTest, WhatIsNotConsumedComesAgainBeforeLaterBytes) {
  open();
  bytes("get a\r\nge");
  EXPECT_THAT(receive(), ElementsAre("get a\r\nge"));
  complete({.consumed = 7});
  EXPECT_THAT(receive(), IsEmpty());
  bytes("t b\r\n");
  EXPECT_THAT(receive(), ElementsAre("get b\r\n"));
  complete({.consumed = 0, .need = 10});
  bytes("12");
  EXPECT_THAT(receive(), IsEmpty());
  bytes("3456");
  EXPECT_THAT(receive(), ElementsAre("get b\r\n123456"));
}

TEST_F(AmTransportTest, AStreamIsInOneBurstAtATime) {
  open();
  bytes("one");
  EXPECT_THAT(receive(0), ElementsAre("one"));
  bytes("two");
  EXPECT_THAT(receive(1), IsEmpty());
  complete({.consumed = 2});
  EXPECT_THAT(receive(1), ElementsAre("etwo"));
  complete({.consumed = 4}, {}, 1);
}

TEST_F(AmTransportTest, NothingIsReadWhileRepliesAreUnsent) {
  open();
  bytes("one");
  EXPECT_THAT(receive(), ElementsAre("one"));
  port_.done_at_once = false;
  const std::string reply = "reply";
  complete({.consumed = 3}, {span(reply)});
  bytes("two");
  EXPECT_THAT(receive(), IsEmpty());
  port_.finish();
  EXPECT_THAT(receive(), ElementsAre("two"));
}

TEST_F(AmTransportTest, ABodyIsFetchedIntoItsWindows) {
  open();
  std::string body(100'000, 'b');
  bytes("set k 0 0 100000\r\n");
  announce(&body);
  bytes("\r\nget k\r\n");
  EXPECT_THAT(receive(), ElementsAre("set k 0 0 100000\r\n"));
  EXPECT_EQ(chunk().announced, 0u);  // the chunk was made before the announcement came
  complete({.consumed = 18, .need = 60'000});
  EXPECT_THAT(receive(), ElementsAre(""));
  EXPECT_EQ(chunk().announced, 100'000u);
  std::string store(100'000, '.');
  auto* const place = reinterpret_cast<uint8_t*>(store.data());
  windows_ = {{place, 70'000}, {place + 70'000, 30'000}};
  complete({.consumed = 0, .body = windows_[0]});
  EXPECT_EQ(store, body);
  EXPECT_EQ(port_.held, 0u);
  EXPECT_THAT(receive(), ElementsAre(""));
  EXPECT_EQ(chunk().body_received, 100'000u);
  complete({});
  EXPECT_THAT(receive(), ElementsAre("\r\nget k\r\n"));
  EXPECT_EQ(transport_.am_counters().fetched_bytes.get(), 100'000u);
}

class AmTransportStallTest : public AmTransportTest {
 protected:
  AmTransportStallTest() : AmTransportTest(false, 0, 60) {}
};

// The body is cancelled for another client's, which finds no space. Bytes of it that have come and
// that the worker does not know of would be missing in what is discarded of the stream.
TEST_F(AmTransportStallTest, ABodyIsNotCancelledWhileTheWorkerDoesNotKnowOfItsBytes) {
  open();
  std::string body(100'000, 'b');
  std::string store(100'000, '.');
  bytes("set k 0 0 100000\r\n");
  announce(&body);
  EXPECT_THAT(receive(), ElementsAre("set k 0 0 100000\r\n"));
  windows_ = {{reinterpret_cast<uint8_t*>(store.data()), store.size()}};
  complete({.consumed = 18, .body = windows_[0]});
  holds_body_ = true;
  EXPECT_EQ(store, body);
  RxBurst& full = bursts_[1];
  full.arena.used = full.arena.size;
  for (int i = 0; i < 2; ++i) {
    budget_.count_refused_body();
    now_ms_ += 5000;
    (void)transport_.receive(full);
    EXPECT_THAT(full.chunks, IsEmpty());
  }
  EXPECT_THAT(cancelled_, IsEmpty());
  EXPECT_THAT(receive(), ElementsAre(""));
  EXPECT_EQ(chunk().body_received, 100'000u);
  complete({});
}

// Of several clients that hold up another one's body, the one without progress for the longest
// time.
TEST_F(AmTransportStallTest, TheStillestBodyIsCancelled) {
  open(0);
  open(1);
  holds_body_ = true;
  now_ms_ += 3000;
  bytes("set");
  EXPECT_THAT(receive(), ElementsAre("set"));
  complete({.consumed = 3});
  budget_.count_refused_body();
  now_ms_ += 2500;
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_THAT(cancelled_, ElementsAre(1u));
}

class AmTransportDeviceTest : public AmTransportTest {
 protected:
  AmTransportDeviceTest() : AmTransportTest(true) {}

  // A set whose body is announced, up to the transport's fetch. Returns the chunk that follows.
  RxChunk set(std::string* body, std::string* host) {
    open();
    bytes("set k 0 0 100000\r\n");
    announce(body);
    EXPECT_THAT(receive(), ElementsAre("set k 0 0 100000\r\n"));
    windows_ = {{reinterpret_cast<uint8_t*>(host->data()), host->size()}};
    complete({.consumed = 18, .body = windows_[0]});
    EXPECT_THAT(receive(), ElementsAre(""));
    const RxChunk came = chunk();
    complete({});
    return came;
  }
};

TEST_F(AmTransportDeviceTest, ABodyGoesToTheDevicesMemory) {
  std::string body(100'000, 'b');
  std::string host(100'000, '.');
  std::string device(100'000, '.');
  device_ = {reinterpret_cast<uint8_t*>(device.data()), device.size()};
  const RxChunk came = set(&body, &host);
  EXPECT_EQ(came.body_received, 100'000u);
  EXPECT_TRUE(came.body_on_device);
  EXPECT_TRUE(device == body);
  EXPECT_TRUE(host == std::string(100'000, '.'));
  EXPECT_EQ(transport_.am_counters().device_bytes.get(), 100'000u);
}

TEST_F(AmTransportDeviceTest, ABodyWithoutOnePlaceThereGoesToTheWindows) {
  std::string body(100'000, 'b');
  std::string host(100'000, '.');
  const RxChunk came = set(&body, &host);
  EXPECT_EQ(came.body_received, 100'000u);
  EXPECT_FALSE(came.body_on_device);
  EXPECT_TRUE(host == body);
  EXPECT_EQ(device_windows_, 1);
  EXPECT_EQ(transport_.am_counters().device_bytes.get(), 0u);
  EXPECT_EQ(transport_.am_counters().fetched_bytes.get(), 100'000u);
}

TEST_F(AmTransportTest, APortThatReachesNoDeviceIsNotAskedForOne) {
  open();
  std::string body(100'000, 'b');
  std::string host(100'000, '.');
  bytes("set k 0 0 100000\r\n");
  announce(&body);
  EXPECT_THAT(receive(), ElementsAre("set k 0 0 100000\r\n"));
  windows_ = {{reinterpret_cast<uint8_t*>(host.data()), host.size()}};
  complete({.consumed = 18, .body = windows_[0]});
  EXPECT_TRUE(host == body);
  EXPECT_EQ(device_windows_, 0);
}

TEST_F(AmTransportTest, OtherBytesByRendezvousKeepTheirPlace) {
  open();
  std::string small = "0123456789";
  bytes("set k 0 0 12\r\nab");
  announce(&small);
  bytes("\r\n");
  EXPECT_THAT(receive(), ElementsAre("set k 0 0 12\r\nab"));
  complete({.consumed = 0, .need = 28});
  // The worker may take space for it, which it does not.
  EXPECT_THAT(receive(), ElementsAre("set k 0 0 12\r\nab"));
  EXPECT_EQ(chunk().announced, 10u);
  complete({.consumed = 0, .need = 28});
  EXPECT_THAT(receive(), ElementsAre("set k 0 0 12\r\nab0123456789\r\n"));
  complete({.consumed = 28});
  bytes("next");
  EXPECT_THAT(receive(), ElementsAre("next"));
}

TEST_F(AmTransportTest, APinIsKeptUntilAllPiecesAreSent) {
  open();
  bytes("get k\r\n");
  EXPECT_THAT(receive(), ElementsAre("get k\r\n"));
  port_.done_at_once = false;
  const std::string large(20'000, 'l');
  const std::string rest(100, 'r');
  complete({.consumed = 7}, {span(large, kPinFollows), span(rest, 9)});
  EXPECT_THAT(released_, IsEmpty());
  EXPECT_TRUE(port_.sent[0].rendezvous);
  EXPECT_EQ(port_.sent[1].data, rest);
  port_.finish();
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_THAT(released_, ElementsAre(9));
}

TEST_F(AmTransportTest, AFailedEndpointFreesWhatItHeld) {
  open();
  EXPECT_EQ(budget_.current(), 1u);
  std::string body(50'000, 'b');
  bytes("get k\r\n");
  EXPECT_THAT(receive(), ElementsAre("get k\r\n"));
  announce(&body);
  port_.fail(0);
  EXPECT_THAT(receive(1), IsEmpty());
  EXPECT_THAT(port_.closed, IsEmpty());  // its chunk is with the worker
  port_.done_at_once = false;
  const std::string large(20'000, 'l');
  complete({.consumed = 7}, {span(large, 5)});
  EXPECT_THAT(released_, ElementsAre(5));
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_THAT(port_.closed, ElementsAre(0));
  EXPECT_EQ(port_.held, 0u);
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_EQ(sessions_, 0);
  EXPECT_EQ(budget_.current(), 0u);
  EXPECT_EQ(transport_.stream_count(), 0u);
}

TEST_F(AmTransportTest, AFetchIntoABodyEndsBeforeTheSession) {
  open();
  std::string body(100'000, 'b');
  std::string store(100'000, '.');
  windows_ = {{reinterpret_cast<uint8_t*>(store.data()), store.size()}};
  bytes("set");
  EXPECT_THAT(receive(), ElementsAre("set"));
  complete({.consumed = 3, .body = windows_[0]});
  port_.done_at_once = false;
  announce(&body);
  EXPECT_THAT(receive(), IsEmpty());
  port_.fail(0);
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_THAT(port_.closed, ElementsAre(0));
  EXPECT_EQ(sessions_, 1);
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_EQ(sessions_, 0);
}

TEST_F(AmTransportTest, MoreThanTheWindowEndsTheStream) {
  open();
  bytes("x");
  EXPECT_THAT(receive(), ElementsAre("x"));
  for (uint32_t sent = 0; sent < kAmWindow; sent += kAmEagerMax)
    bytes(std::string(kAmEagerMax, 'x'));
  EXPECT_THAT(receive(1), IsEmpty());
  complete({.consumed = 1});
  ASSERT_FALSE(port_.sent.empty());
  EXPECT_EQ(port_.sent.back().header.handler, AmHandler::kBye);
  EXPECT_EQ(port_.sent.back().data, "more bytes than the window has");
}

TEST_F(AmTransportTest, WhatWasTakenIsReportedWithoutReplies) {
  open();
  for (uint32_t taken = 0; taken < 2 * kAmWindow; taken += kAmEagerMax) {
    bytes(std::string(kAmEagerMax, 'q'));
    EXPECT_EQ(receive().size(), 1u);
    complete({.consumed = kAmEagerMax});
  }
  ASSERT_FALSE(port_.sent.empty());
  EXPECT_EQ(port_.sent[0].header.handler, AmHandler::kTaken);
  EXPECT_GE(port_.sent[0].header.taken, kAmWindow / 4);
}

TEST_F(AmTransportTest, AfterAByeWhatCameIsAnsweredFirst) {
  open();
  bytes("get a\r\n");
  port_.message(0, {.handler = AmHandler::kBye, .sequence = next_++}, "");
  EXPECT_THAT(receive(), ElementsAre("get a\r\n"));
  const std::string reply = "END\r\n";
  complete({.consumed = 7}, {span(reply)});
  ASSERT_EQ(port_.sent.size(), 2u);
  EXPECT_EQ(port_.sent[0].data, reply);
  EXPECT_EQ(port_.sent[1].header.handler, AmHandler::kBye);
}

TEST_F(AmTransportTest, ValuesThatAreNotFetchedAreCounted) {
  const std::string value(20'000, 'v');
  open();
  bytes("get a b\r\n");
  EXPECT_THAT(receive(), ElementsAre("get a b\r\n"));
  EXPECT_EQ(chunk().value_memory_max, kClientMemory);
  port_.done_at_once = false;
  complete({.consumed = 9, .values_wait = true, .values_refused = 2},
           {span(value, 5), span(value, 6)});
  EXPECT_EQ(transport_.unread_bytes(), 40'000u);
  EXPECT_EQ(transport_.am_counters().values_waited.get(), 1u);
  EXPECT_EQ(transport_.am_counters().values_refused.get(), 2u);
  port_.finish();
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_EQ(transport_.unread_bytes(), 0u);
  EXPECT_EQ(transport_.am_counters().unread_most.get(), 40'000u);
  bytes("get c\r\n");
  EXPECT_THAT(receive(), ElementsAre("get c\r\n"));
  complete({.consumed = 7}, {span(value, 7)});
  EXPECT_EQ(transport_.unread_bytes(), 20'000u);
  port_.fail(0);
  port_.finish(false);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(receive(), IsEmpty());
  EXPECT_EQ(transport_.unread_bytes(), 0u);
  EXPECT_EQ(transport_.am_counters().unread_most.get(), 40'000u);
}

TEST_F(AmTransportTest, TheLimitOnConnectionsHolds) {
  for (uint32_t i = 0; i < 10; ++i) port_.open(i);
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_EQ(transport_.stream_count(), 8u);
  EXPECT_EQ(transport_.am_counters().refused.get(), 2u);
}

TEST_F(AmTransportTest, AStuckPortStartsAnew) {
  open();
  port_.stuck = true;
  EXPECT_LE(pass(60'000, [this] { return port_.restarts != 0; }), 4000u);  // it looks once a second
  EXPECT_EQ(port_.restarts, 1u);
  EXPECT_THAT(port_.closed, ElementsAre(0));
  EXPECT_EQ(transport_.stream_count(), 0u);
  EXPECT_TRUE(transport_.has_new_event_fd());
  EXPECT_FALSE(transport_.has_new_event_fd());
  next_ = 1;
  open();
  bytes("get a\r\n");
  EXPECT_THAT(receive(), ElementsAre("get a\r\n"));
  complete({.consumed = 7});
}

TEST_F(AmTransportTest, AnEndpointThatNeverEndsIsEndedByARestart) {
  open();
  open(1);
  port_.never_ends = true;
  port_.fail(0);
  EXPECT_EQ(pass(5000, [this] { return port_.closed.size() > 1; }), 5000u);
  EXPECT_THAT(port_.closed, ElementsAre(0));
  EXPECT_EQ(port_.restarts, 0u);
  EXPECT_EQ(transport_.stream_count(), 2u);
  // docs/ucx.md: within 10 seconds in all.
  EXPECT_LE(pass(60'000, [this] { return port_.restarts != 0; }), 5000u);
  EXPECT_EQ(port_.restarts, 1u);
  EXPECT_EQ(transport_.stream_count(), 0u);
}

// It takes rounds of the thread until an endpoint has ended, and on a busy machine there is a long
// time between them.
TEST_F(AmTransportTest, AThreadThatIsHeldUpEndsNoOtherEndpoints) {
  open();
  open(1);
  port_.ends_in = 20;
  port_.fail(0);
  for (uint32_t round = 0; round <= port_.ends_in; ++round) {
    EXPECT_THAT(receive(), IsEmpty());
    hold_up();
  }
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_THAT(port_.closed, ElementsAre(0));
  EXPECT_EQ(port_.restarts, 0u);
  EXPECT_EQ(transport_.am_counters().restarts.get(), 0u);
  EXPECT_EQ(transport_.stream_count(), 1u);
}

TEST_F(AmTransportTest, WhileAnEndpointEndsTheThreadLooksOften) {
  EXPECT_EQ(transport_.sleep_ms_max(), INT32_MAX);
  open();
  EXPECT_EQ(transport_.sleep_ms_max(), 1000);
  port_.ends_in = 3;
  port_.fail(0);
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_EQ(transport_.sleep_ms_max(), static_cast<int>(AmTransport::kRoundMsMax));
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_EQ(transport_.sleep_ms_max(), INT32_MAX);
  // As many that have ended without a word.
  for (uint32_t i = 0; i < 3; ++i) {
    port_.open(0);
    EXPECT_THAT(receive(), IsEmpty());
    EXPECT_EQ(transport_.sleep_ms_max(), static_cast<int>(AmTransport::kRoundMsMax));
    port_.fail(0);
    pass(100);
  }
  open();
  EXPECT_EQ(transport_.sleep_ms_max(), 1000);
}

TEST_F(AmTransportTest, APortIsCheckedAfterTimeThatTheThreadHasWaited) {
  open();
  pass(1000);
  const uint32_t before = port_.checks;
  for (int i = 0; i < 40; ++i) {
    hold_up();
    EXPECT_THAT(receive(), IsEmpty());
  }
  EXPECT_LE(port_.checks, before + 1);
  pass(10'000);
  EXPECT_GE(port_.checks, before + 9);
}

TEST_F(AmTransportTest, AClientMustGreetWhileTheThreadListens) {
  port_.open(0);
  EXPECT_THAT(receive(), IsEmpty());
  for (int i = 0; i < 20; ++i) {
    hold_up();
    EXPECT_THAT(receive(), IsEmpty());
  }
  EXPECT_THAT(port_.closed, IsEmpty());
  EXPECT_LE(pass(60'000, [this] { return !port_.closed.empty(); }),
            1000 * (AmTransport::kPatienceS + 2));
  EXPECT_THAT(port_.closed, ElementsAre(0));
}

TEST_F(AmTransportTest, WhatAStuckPortForgetsIsLetGo) {
  const std::string value(20'000, 'v');
  open();
  bytes("get a\r\n");
  EXPECT_THAT(receive(), ElementsAre("get a\r\n"));
  port_.done_at_once = false;
  port_.forgets = true;
  complete({.consumed = 7}, {span(value, 5)});
  EXPECT_THAT(released_, IsEmpty());
  port_.stuck = true;
  pass(60'000, [this] { return port_.restarts != 0; });
  EXPECT_EQ(port_.restarts, 1u);
  EXPECT_THAT(released_, IsEmpty());  // the client may still read
  EXPECT_EQ(transport_.unread_bytes(), 0u);
  pass(60'000, [this] { return !released_.empty(); });
  EXPECT_THAT(released_, ElementsAre(5));
}

class AmTransportIdleTest : public AmTransportTest {
 protected:
  AmTransportIdleTest() : AmTransportTest(false, 2) {}
};

TEST_F(AmTransportIdleTest, WhoSaysNothingIsClosed) {
  open();
  (void)pass(4000);
  EXPECT_EQ(sessions_, 0);
  EXPECT_EQ(transport_.counters().idle_closed.get(), 1u);
}

TEST_F(AmTransportIdleTest, WhoIsInTheMiddleOfAValueIsNotIdle) {
  open();
  bytes("set k 0 0 2\r\na");
  EXPECT_THAT(receive(), ElementsAre("set k 0 0 2\r\na"));
  complete({.need = 17, .in_value = true});
  (void)pass(4000);
  bytes("b\r\n");
  EXPECT_THAT(receive(), ElementsAre("set k 0 0 2\r\nab\r\n"));
  complete({.consumed = 17});
  (void)pass(4000);
  EXPECT_EQ(sessions_, 0);
}

TEST_F(AmTransportTest, DrainingEndsIdleStreams) {
  open();
  transport_.drain();
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_FALSE(transport_.is_over());
  EXPECT_EQ(port_.sent.back().header.handler, AmHandler::kBye);
  port_.fail(0);
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_TRUE(transport_.is_over());
}

}  // namespace
}  // namespace warpcache::io
