// SPDX-License-Identifier: Apache-2.0
#include "net/neighbour.h"

#include <gtest/gtest.h>

#include <string>

#include "net/testing/packets.h"

namespace warpcache::net {
namespace {

const std::string kKernelMac("\x02\0\0\0\0\1", 6);
const std::string kServerMac("\x02\0\0\0\0\2", 6);
const std::string kBroadcast(6, '\xff');
const std::string kKernel("\x0a\x09\0\1", 4);
const std::string kServer("\x0a\x09\0\2", 4);
const std::string kNobody(4, '\0');

const uint8_t* data_of(const std::string& bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

std::string arp(const std::string& to, char operation, const std::string& sender,
                const std::string& target_mac, const std::string& target) {
  const bool is_reply = operation == 2;
  const std::string source = is_reply ? kServerMac : kKernelMac;
  std::string frame = to + source + std::string("\x08\x06\0\1\x08\0\6\4\0", 9) + operation +
                      source + sender + target_mac + target;
  frame.resize(60);
  return frame;
}

std::string answer(const std::string& frame) {
  uint8_t out[kNeighbourFrameMax];
  uint32_t size = answer_arp(bytes_of(frame), data_of(kServerMac), out);
  if (size == 0) size = answer_solicitation(bytes_of(frame), data_of(kServerMac), out);
  return {reinterpret_cast<const char*>(out), size};
}

TEST(Neighbour, AnswersArp) {
  EXPECT_EQ(answer(arp(kBroadcast, 1, kKernel, kNobody + "\0\0", kServer).substr(0, 42)), "")
      << "the target's MAC address has six bytes";
  const std::string request = arp(kBroadcast, 1, kKernel, std::string(6, '\0'), kServer);
  const std::string reply = arp(kKernelMac, 2, kServer, kKernelMac, kKernel);
  EXPECT_EQ(answer(request), reply);
  EXPECT_EQ(answer(request.substr(0, 42)), reply) << "without padding";
}

TEST(Neighbour, AnswersNoOtherArp) {
  const std::string none(6, '\0');
  EXPECT_EQ(answer(arp(kBroadcast, 1, kKernel, none, kKernel)), "") << "announces itself";
  EXPECT_EQ(answer(arp(kBroadcast, 1, kNobody, none, kServer)), "") << "probes";
  EXPECT_EQ(answer(arp(kKernelMac, 2, kServer, kKernelMac, kKernel)), "") << "a reply";
  const std::string request = arp(kBroadcast, 1, kKernel, none, kServer);
  for (size_t size = 0; size < 42; ++size) EXPECT_EQ(answer(request.substr(0, size)), "");
  for (const size_t at : {12u, 13u, 15u, 16u, 18u, 19u, 21u}) {
    std::string other = request;
    ++other[at];
    EXPECT_EQ(answer(other), "") << at;
  }
}

// fd00::1 asks for fd00::2.
std::string solicitation() {
  const auto address = [](char last) { return "\xfd" + std::string(14, '\0') + last; };
  std::string icmp = std::string("\x87\0\0\0\0\0\0\0", 8) + address(2) + "\1\1" + kKernelMac;
  return "\x33\x33\xff" + std::string("\0\0\2", 3) + kKernelMac + "\x86\xdd" +
         std::string("\x60\0\0\0\0\x20\x3a\xff", 8) + address(1) + "\xff\x02" +
         std::string(9, '\0') + "\1\xff" + std::string("\0\0\2", 3) + icmp;
}

TEST(Neighbour, AnswersSolicitations) {
  const std::string request = solicitation();
  ASSERT_EQ(request.size(), 86u);
  const std::string reply = answer(request);
  ASSERT_EQ(reply.size(), 86u);
  EXPECT_EQ(reply.substr(0, 14), kKernelMac + kServerMac + "\x86\xdd");
  EXPECT_EQ(reply.substr(22, 16), request.substr(62, 16)) << "from the address that was asked for";
  EXPECT_EQ(reply.substr(38, 16), request.substr(22, 16));
  EXPECT_EQ(reply[54], '\x88');
  EXPECT_EQ(reply[58], '\x60') << "solicited, override";
  EXPECT_EQ(reply.substr(62, 16), request.substr(62, 16));
  EXPECT_EQ(reply.substr(78), "\2\1" + kServerMac);
  // The pseudo header is the addresses, the length and the protocol.
  const std::string covered =
      reply.substr(22, 32) + std::string("\0\x20\0\x3a", 4) + reply.substr(54);
  EXPECT_EQ(checksum_fold(checksum_add(0, data_of(covered), covered.size())), 0xffff);
}

TEST(Neighbour, AnswersNoOtherIcmp) {
  const std::string request = solicitation();
  for (size_t size = 0; size < 78; ++size) EXPECT_EQ(answer(request.substr(0, size)), "");
  for (const size_t at : {13u, 20u, 21u, 54u, 55u}) {
    std::string other = request;
    ++other[at];
    EXPECT_EQ(answer(other), "") << at;
  }
  std::string probe = request;
  probe.replace(22, 16, std::string(16, '\0'));
  EXPECT_EQ(answer(probe), "") << "looks whether another host has the address";
}

bool sent_back(std::string& frame) {
  return send_back({reinterpret_cast<uint8_t*>(frame.data()), frame.size()});
}

TEST(Neighbour, SendsPacketsBack) {
  for (const bool ipv6 : {false, true}) {
    testing::FrameForm form;
    form.ipv6 = ipv6;
    const std::string frame = testing::frame_of("payload", form);
    std::string back = frame;
    ASSERT_TRUE(sent_back(back));
    EXPECT_EQ(back.substr(0, 12), frame.substr(6, 6) + frame.substr(0, 6));
    const size_t source = ipv6 ? 22 : 26;
    const size_t size = ipv6 ? 16 : 4;
    EXPECT_EQ(back.substr(source, size), frame.substr(source + size, size));
    EXPECT_EQ(back.substr(source + size, size), frame.substr(source, size));
    EXPECT_EQ(testing::udp_checksum_of(back), testing::udp_checksum_of(frame));
    EXPECT_EQ(back.substr(source + 2 * size), frame.substr(source + 2 * size));
    ASSERT_TRUE(sent_back(back));
    EXPECT_EQ(back, frame);
  }
}

// The packet that an ICMP error is about goes back with its own addresses swapped.
TEST(Neighbour, SendsErrorsBack) {
  for (const bool ipv6 : {false, true}) {
    testing::FrameForm form;
    form.ipv6 = ipv6;
    const std::string sent = testing::frame_of("payload", form);
    std::string returned = sent;
    ASSERT_TRUE(sent_back(returned));
    const size_t headers = ipv6 ? 54 : 34;
    const std::string unreachable = (ipv6 ? "\1" : "\3") + std::string(7, '\0');
    std::string error = sent.substr(0, headers) + unreachable + returned.substr(14);
    error[ipv6 ? 20 : 23] = ipv6 ? '\x3a' : '\1';
    std::string back = error;
    ASSERT_TRUE(sent_back(back));
    EXPECT_EQ(back.substr(headers + 8), sent.substr(14));
    std::string echo = error;
    echo[headers] = ipv6 ? '\x80' : '\x08';
    back = echo;
    ASSERT_TRUE(sent_back(back));
    EXPECT_EQ(back.substr(headers), echo.substr(headers));
    for (size_t size = headers; size < error.size(); ++size) {
      std::string part = error.substr(0, size);
      EXPECT_TRUE(sent_back(part));
    }
  }
}

TEST(Neighbour, SendsNothingElseBack) {
  std::string request = arp(kServerMac, 1, kKernel, std::string(6, '\0'), kServer);
  EXPECT_FALSE(sent_back(request));
  std::string group = testing::frame_of("payload");
  group[0] = '\x33';
  EXPECT_FALSE(sent_back(group));
  std::string multicast = testing::frame_of("payload");
  multicast[30] = '\xe0';
  EXPECT_FALSE(sent_back(multicast));
  for (size_t size = 0; size < 34; ++size) {
    std::string part = testing::frame_of("payload").substr(0, size);
    EXPECT_FALSE(sent_back(part));
  }
}

}  // namespace
}  // namespace warpcache::net
