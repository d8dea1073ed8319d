// SPDX-License-Identifier: Apache-2.0
#include "worker/command_log.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "protocol/framing/frame.h"
#include "worker/testing/fake_engine.h"
#include "worker/testing/fake_transport.h"
#include "worker/worker.h"

namespace warpcache::worker {
namespace {

// The log of `replies`, which come in pieces of `piece` bytes.
std::string log_of_replies(const std::string& replies, size_t piece) {
  std::vector<io::ReplySpan> spans;
  for (size_t at = 0; at < replies.size(); at += piece) {
    const size_t size = std::min(piece, replies.size() - at);
    spans.push_back(
        {reinterpret_cast<const uint8_t*>(replies.data()) + at, static_cast<uint32_t>(size), 0});
  }
  testing::internal::CaptureStderr();
  CommandLog log;
  log.replies(5, spans.data(), static_cast<uint32_t>(spans.size()));
  log.flush();
  return testing::internal::GetCapturedStderr();
}

std::string log_of_commands(std::string text, bool secret = false) {
  protocol::FrameState state{};
  const protocol::FrameLimits limits{1 << 20, 1 << 20, true, protocol::kProtocolAuto};
  auto* const input = reinterpret_cast<uint8_t*>(text.data());
  protocol::Frame frames[64];
  const protocol::FrameResult framed =
      protocol::frame(state, limits, {input, text.size()}, 0, 0, frames, 64);
  testing::internal::CaptureStderr();
  CommandLog log;
  log.commands(5, frames, framed.count, input, secret);
  log.flush();
  return testing::internal::GetCapturedStderr();
}

TEST(CommandLog, ConnectionsAreNamedAsMemcachedNamesThem) {
  testing::internal::CaptureStderr();
  CommandLog log;
  log.opened(5, protocol::kProtocolAuto);
  log.opened(6, protocol::kProtocolText);
  log.opened(7, protocol::kProtocolBinary);
  log.closed(5);
  log.flush();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "<5 new auto-negotiating client connection\n<6 new ascii client connection.\n"
            "<7 new binary client connection.\n<5 connection closed.\n");
}

TEST(CommandLog, CommandsAreLoggedWithoutValues) {
  EXPECT_EQ(log_of_commands("get foo\r\nset foo 0 0 6\r\nsecret\r\ngets a b\r\ngat 100 c d\n"
                            "ms foo 6 T0\r\nsecret\r\nmg foo v\r\nversion\r\n"),
            "<5 get foo\n<5 set foo 0 0 6\n<5 gets a b\n<5 gat 100 c d\n<5 ms foo 6 T0\n"
            "<5 mg foo v\n<5 version\n");
}

TEST(CommandLog, BytesThatAreNoTextAreEscaped) {
  EXPECT_EQ(log_of_commands("bogus\x01\x1b[2J\\\xff\r\n"), "<5 bogus\\x01\\x1b[2J\\x5c\\xff\n");
  EXPECT_EQ(log_of_replies("VALUE a\x07 0 1\r\nx\r\n", 100), ">5 sending key a\\x07\n");
}

TEST(CommandLog, NothingIsSaidBeforeALogin) {
  const std::string log = log_of_commands("set auth 0 0 10\r\nbob secret\r\nsecret\r\n", true);
  EXPECT_EQ(log, "<5 (before a login)\n<5 (before a login)\n");
}

TEST(CommandLog, RepliesAreLoggedWithoutValuesAndLists) {
  const std::string replies =
      "VALUE foo 0 14\r\nEND\r\nSECRET1\r\n\r\nVALUE bar 7 0 99\r\n\r\nEND\r\nSTORED\r\n"
      "VA 9 kfoo s9\r\nVALUE\r\nHD\r\nHD s1\r\nSTAT pid 1\r\nEND\r\nSERVER_ERROR out of "
      "memory\r\n";
  const std::string expected =
      ">5 sending key foo\n>5 sending key bar\n>5 END\n>5 STORED\n>5 VA 9 kfoo s9\n>5 HD s1\n"
      ">5 END\n>5 SERVER_ERROR out of memory\n";
  for (const size_t piece : {1u, 2u, 3u, 7u, 16u, 1000u}) {
    EXPECT_EQ(log_of_replies(replies, piece), expected) << piece;
  }
}

TEST(CommandLog, BinaryMessagesAreLoggedByTheirHeaders) {
  const std::string get(
      "\x80\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x07"
      "\x00\x00\x00\x00\x00\x00\x00\x00"
      "foo",
      27);
  EXPECT_EQ(log_of_commands(get),
            "<5 Read binary protocol data:\n<5    0x80 0x00 0x00 0x03\n<5    0x00 0x00 0x00 0x00\n"
            "<5    0x00 0x00 0x00 0x03\n<5    0x00 0x00 0x00 0x07\n<5    0x00 0x00 0x00 0x00\n"
            "<5    0x00 0x00 0x00 0x00\n<5 GET foo\n");
  const std::string reply(
      "\x81\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x0a\x00\x00\x00\x07"
      "\x00\x00\x00\x00\x00\x00\x00\x06"
      "\x00\x00\x00\x00SECRET",
      34);
  const std::string header =
      ">5 Writing bin response:\n>5   0x81 0x00 0x00 0x00\n>5   0x04 0x00 0x00 0x00\n"
      ">5   0x00 0x00 0x00 0x0a\n>5   0x00 0x00 0x00 0x07\n>5   0x00 0x00 0x00 0x00\n"
      ">5   0x00 0x00 0x00 0x06\n";
  for (const size_t piece : {1u, 5u, 100u}) {
    EXPECT_EQ(log_of_replies(reply + reply, piece), header + header) << piece;
  }
}

TEST(CommandLog, AWorkerLogsWhatItRunsWhileItIsWanted) {
  FakeEngine engine;
  FakeTransport transport;
  Worker worker({}, transport, engine);
  testing::internal::CaptureStderr();
  FakeTransport::Stream& quiet = transport.open();
  quiet.input = "get a\r\n";
  ASSERT_TRUE(worker.run_once(0));
  set_log_verbosity(1);
  quiet.input = "get b\r\n";
  ASSERT_TRUE(worker.run_once(0));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");

  testing::internal::CaptureStderr();
  set_log_verbosity(kVerbosityOfCommands);
  FakeTransport::Stream& loud = transport.open();
  loud.input = "set c 0 0 6\r\nsecret\r\nget c\r\n";
  transport.add_datagram("get d\r\n");
  ASSERT_TRUE(worker.run_once(0));
  transport.close(loud);
  transport.close(quiet);
  set_log_verbosity(0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "<31 new auto-negotiating client connection\n<31 set c 0 0 6\n<31 get c\n"
            ">31 STORED\n>31 sending key c\n>31 END\n<udp get d\n>udp END\n"
            "<31 connection closed.\n<30 connection closed.\n");
}

}  // namespace
}  // namespace warpcache::worker
