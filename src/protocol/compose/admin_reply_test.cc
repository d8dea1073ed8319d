// SPDX-License-Identifier: Apache-2.0
#include "protocol/compose/admin_reply.h"

#include <gtest/gtest.h>

#include <string>

#include "protocol/framing/udp_frame.h"
#include "protocol/testing/messages.h"

namespace warpcache::protocol {
namespace {

using testing::text_of;

Request text_request(uint32_t bits = 0) {
  Request request = {};
  request.op = Op::kStats;
  request.bits = bits;
  return request;
}

Request binary_stat(uint32_t bits = 0) {
  Request request = text_request(bits);
  request.protocol = Protocol::kBinary;
  request.binary_opcode = kOpStat;
  store_as(&request.opaque, uint32_t{0xa1b2c3d4});
  return request;
}

template <typename Reply>
std::string written(Reply reply) {
  std::string text;
  reply([&text](Bytes piece) { text += text_of(piece); });
  return text;
}

std::string packet(const std::string& key, const std::string& value, char status = 0) {
  std::string bytes = testing::binary_request(kOpStat, "", key, value);
  bytes[0] = '\x81';
  bytes[7] = status;
  return bytes;
}

TEST(AdminReply, Stats) {
  const auto stats = [](const Request& request) {
    return written([&](auto sink) {
      reply_stat(request, bytes_of("pid"), bytes_of("42"), sink);
      reply_stat(request, bytes_of("empty"), Bytes{}, sink);
      reply_stats_end(request, sink);
    });
  };
  EXPECT_EQ(stats(text_request()), "STAT pid 42\r\nSTAT empty \r\nEND\r\n");
  EXPECT_EQ(stats(binary_stat()), packet("pid", "42") + packet("empty", "") + packet("", ""));
}

TEST(AdminReply, Results) {
  const auto ok = [](const Request& request) {
    return written([&](auto sink) { reply_ok(request, sink); });
  };
  EXPECT_EQ(ok(text_request()), "OK\r\n");
  EXPECT_EQ(ok(text_request(kNoReply)), "");
  EXPECT_EQ(ok(binary_stat()), packet("", ""));
  EXPECT_EQ(ok(binary_stat(kQuiet)), "");
  const auto error = [](const Request& request) {
    return written([&](auto sink) { reply_error(request, Status::kUnknownCommand, sink); });
  };
  EXPECT_EQ(error(text_request()), "ERROR\r\n");
  EXPECT_EQ(error(text_request(kNoReply)), "");
  EXPECT_EQ(error(binary_stat(kQuiet)), packet("", "Unknown command", '\x81'));
}

TEST(AdminReply, Lines) {
  const auto line = [](const Request& request) {
    return written([&](auto sink) { reply_line(request, bytes_of("RESET"), sink); });
  };
  EXPECT_EQ(line(text_request()), "RESET\r\n");
  EXPECT_EQ(line(text_request(kNoReply)), "");
  EXPECT_EQ(line(binary_stat()), packet("", "RESET"));
  EXPECT_EQ(line(binary_stat(kQuiet)), "");
}

TEST(UdpFrame, Header) {
  const std::string datagram("\x12\x34\x00\x00\x00\x01\x00\x00mn\r\n", 12);
  UdpHeader header;
  EXPECT_EQ(parse_udp_header(bytes_of(datagram), header), UdpVerdict::kRequest);
  EXPECT_EQ(header.request_id, 0x1234);
  EXPECT_EQ(header.count, 1);
  uint8_t out[kUdpHeaderSize];
  header.sequence = 0x0102;
  header.count = 0x0304;
  compose_udp_header(header, out);
  EXPECT_EQ(text_of({out, sizeof(out)}), std::string("\x12\x34\x01\x02\x03\x04\x00\x00", 8));
  EXPECT_EQ(parse_udp_header(bytes_of(datagram.substr(0, 8)), header), UdpVerdict::kTooShort);
  EXPECT_EQ(parse_udp_header({}, header), UdpVerdict::kTooShort);
  std::string part = datagram;
  part[5] = 2;
  EXPECT_EQ(parse_udp_header(bytes_of(part), header), UdpVerdict::kMultiPart);
}

TEST(UdpFrame, SplitsAt1400Bytes) {
  EXPECT_EQ(udp_datagram_count(0), 0u);
  EXPECT_EQ(udp_datagram_count(1), 1u);
  EXPECT_EQ(udp_datagram_count(1392), 1u);
  EXPECT_EQ(udp_datagram_count(1393), 2u);
  for (const uint32_t size : {1u, 1392u, 1393u, 2784u, 100000u, kUdpReplyMax}) {
    uint64_t total = 0;
    const uint32_t count = udp_datagram_count(size);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t payload = udp_payload_size(size, i);
      EXPECT_GT(payload, 0u);
      EXPECT_LE(payload + kUdpHeaderSize, 1400u);
      total += payload;
    }
    EXPECT_EQ(total, size);
    EXPECT_LE(count, kUdpDatagramCountMax);
  }
}

}  // namespace
}  // namespace warpcache::protocol
