// SPDX-License-Identifier: Apache-2.0
#include "net/packet.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/testing/heap_copy.h"
#include "net/testing/packets.h"

namespace warpcache::net {
namespace {

using testing::frame_of;
using testing::FrameForm;
using testing::kTestPort;
using testing::set16;
using warpcache::base::testing::HeapCopy;

constexpr size_t kIpv4At = 14;
constexpr size_t kUdpAt = kIpv4At + 20;
const std::string kPayload("\x12\x34\0\0\0\1\0\0get key\r\n", 17);

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

PacketVerdict verdict_of(const std::string& frame, uint16_t port = kTestPort) {
  Packet packet;
  const HeapCopy copy(frame);
  return parse_packet(copy.bytes(), port, packet);
}

std::string mended(std::string frame) {
  testing::mend(frame, testing::kMendAll);
  return frame;
}

// The whole reply to `frame` with `payload`, in memory of exactly its size.
std::string reply_to(const std::string& frame, const std::string& payload) {
  Packet packet;
  const HeapCopy request(frame);
  EXPECT_EQ(parse_packet(request.bytes(), kTestPort, packet), PacketVerdict::kRequest);
  const auto size = static_cast<uint32_t>(payload.size());
  HeapCopy out(std::string(reply_frame_size(packet, size), '\xee'));
  compose_reply_headers(request.bytes().data, packet, size, out.data());
  const uint32_t headers = reply_headers_size(packet);
  mem_copy(out.data() + headers, payload.data(), size);
  finish_udp_checksum(packet, size, out.data());
  EXPECT_EQ(pad_frame(out.data(), headers + size), out.bytes().size);
  return warpcache::base::testing::text_of(out.bytes());
}

// Every form of a request that is accepted.
std::vector<FrameForm> forms() {
  std::vector<FrameForm> all;
  const std::vector<std::vector<uint16_t>> taggings = {
      {}, {0x8100}, {0x88a8}, {0x88a8, 0x8100}, {0x8100, 0x8100}};
  for (const auto& tags : taggings) {
    for (const std::string& padding : {std::string(), std::string(5, '\x55')}) {
      FrameForm form;
      form.vlan_tags = tags;
      form.padding = padding;
      all.push_back(form);
      form.checksum = false;
      all.push_back(form);
      form.ip_options = std::string(40, '\x01');
      all.push_back(form);
      form = FrameForm{};
      form.vlan_tags = tags;
      form.padding = padding;
      form.ipv6 = true;
      all.push_back(form);
    }
  }
  return all;
}

TEST(Checksum, KnownAnswers) {
  const std::string rfc1071 = from_hex("0001f203f4f5f6f7");
  const uint16_t sum = checksum_fold(checksum_add(0, bytes_of(rfc1071).data, 8));
  EXPECT_EQ(load_big16(&sum), 0xddf2);
  const std::string header = from_hex("45000073000040004011b861c0a80001c0a800c7");
  EXPECT_EQ(checksum_fold(checksum_add(0, bytes_of(header).data, 20)), 0xffff);
}

TEST(Checksum, EverySizeAndAlignment) {
  std::mt19937 random(1);
  std::string bytes(300, 0);
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (size_t start = 0; start < 9; ++start) {
    for (size_t size = 0; size < 200; ++size) {
      const std::string part = bytes.substr(start, size);
      const uint8_t* data = bytes_of(bytes).data + start;
      const uint16_t want = testing::slow_checksum(part);
      const uint16_t unaligned = checksum_fold(checksum_add_unaligned(0, data, size));
      const uint16_t aligned = checksum_fold(checksum_add_aligned(0, data, size));
      ASSERT_EQ(load_big16(&unaligned), static_cast<uint16_t>(~want)) << start << " " << size;
      ASSERT_EQ(load_big16(&aligned), static_cast<uint16_t>(~want)) << start << " " << size;
    }
  }
}

TEST(Checksum, CarriesAreKept) {
  const std::string ones(1u << 16, '\xff');
  const uint64_t sum = checksum_add(0, bytes_of(ones).data, ones.size());
  EXPECT_EQ(checksum_fold(sum), 0xffff);
  EXPECT_EQ(checksum_fold(checksum_add16(sum, 1)), checksum_fold(checksum_add16(0, 1)));
  EXPECT_EQ(checksum_fold(UINT64_MAX), 0xffff);
  EXPECT_EQ(checksum_fold(0), 0);
}

// Frames of Scapy, byte for byte.
TEST(Packet, KnownIpv4) {
  const std::string request = from_hex(
      "0200000000010200000000020800"
      "4510002d123400000511b733c000020ac633640b"
      "9c402bcb00196f39"
      "1234000000010000676574206b65790d0a");
  Packet packet;
  EXPECT_EQ(parse_packet(bytes_of(request), kTestPort, packet), PacketVerdict::kRequest);
  EXPECT_EQ(packet.l3_offset, 14);
  EXPECT_EQ(packet.l4_offset, 34);
  EXPECT_EQ(packet.payload_offset, 42);
  EXPECT_EQ(packet.payload_size, 17);
  EXPECT_EQ(packet.ip_version, 4);
  EXPECT_EQ(packet.vlan_count, 0);
  EXPECT_TRUE(packet.has_udp_checksum);
  EXPECT_EQ(reply_to(request, from_hex("1234000000010000454e440d0a")),
            from_hex("0200000000020200000000010800"
                     "450000290000400040114e7bc633640bc000020a"
                     "2bcb9c400015a5de"
                     "1234000000010000454e440d0a"
                     "0000000000"));
}

TEST(Packet, KnownIpv6InTwoVlans) {
  const std::string request = from_hex(
      "02000000000102000000000288a820648100206586dd"
      "6001234500191105"
      "20010db800000000000000000000000a20010db800000000000000000000000b"
      "9c402bcb0019fffb"
      "1234000000010000676574206b65790d0a");
  Packet packet;
  EXPECT_EQ(parse_packet(bytes_of(request), kTestPort, packet), PacketVerdict::kRequest);
  EXPECT_EQ(packet.payload_offset, 70);
  EXPECT_EQ(reply_to(request, from_hex("1234000000010000454e440d0a")),
            from_hex("02000000000202000000000188a820648100206586dd"
                     "6000000000151140"
                     "20010db800000000000000000000000b20010db800000000000000000000000a"
                     "2bcb9c40001536a1"
                     "1234000000010000454e440d0a"));
}

TEST(Packet, EveryForm) {
  for (const FrameForm& form : forms()) {
    const std::string frame = frame_of(kPayload, form);
    Packet packet;
    const HeapCopy copy(frame);
    ASSERT_EQ(parse_packet(copy.bytes(), kTestPort, packet), PacketVerdict::kRequest);
    EXPECT_EQ(packet.vlan_count, form.vlan_tags.size());
    EXPECT_EQ(packet.ip_version, form.ipv6 ? 6 : 4);
    EXPECT_EQ(packet.has_udp_checksum, form.checksum);
    EXPECT_EQ(frame.substr(packet.payload_offset, packet.payload_size), kPayload);
    EXPECT_LE(reply_headers_size(packet), kReplyHeadersMax);
  }
}

TEST(Packet, RepliesGoBackWhereRequestsCameFrom) {
  std::mt19937 random(2);
  for (const FrameForm& form : forms()) {
    const std::string frame = frame_of(kPayload, form);
    for (const size_t size : {0u, 8u, 9u, 100u, 1399u, 1400u, 65507u}) {
      std::string payload(size, 0);
      for (char& byte : payload) byte = static_cast<char>(random());
      const std::string reply = reply_to(frame, payload);
      ASSERT_GE(reply.size(), kEthernetFrameMin);
      EXPECT_EQ(reply.substr(0, 12), frame.substr(6, 6) + frame.substr(0, 6));
      const size_t tags = 4 * form.vlan_tags.size();
      EXPECT_EQ(reply.substr(12, tags + 2), frame.substr(12, tags + 2));
      Packet packet;
      const HeapCopy copy(reply);
      ASSERT_EQ(parse_packet(copy.bytes(), form.source_port, packet), PacketVerdict::kRequest);
      EXPECT_EQ(reply.substr(packet.payload_offset, packet.payload_size), payload);
      EXPECT_EQ(packet.has_udp_checksum, form.checksum);
      EXPECT_EQ(packet.l4_offset - packet.l3_offset, form.ipv6 ? 40 : 20);
      EXPECT_EQ(testing::get16(reply, packet.l4_offset), kTestPort);
      const size_t end = packet.payload_offset + payload.size();
      EXPECT_EQ(reply.substr(end), std::string(reply.size() - end, '\0'));
      // Both ends exchanged make the same sum.
      const std::string back = frame_of(payload, form);
      EXPECT_EQ(testing::udp_checksum_of(reply), testing::udp_checksum_of(back));
    }
  }
}

TEST(Packet, HeadersOfARequestAreNotRepeated) {
  FrameForm form;
  form.ip_options = std::string(8, '\x01');
  const std::string ipv4 = reply_to(frame_of(kPayload, form), kPayload);
  EXPECT_EQ(ipv4.substr(kIpv4At, 10), from_hex("4500002d000040004011"));
  form = FrameForm{};
  form.ipv6 = true;
  const std::string ipv6 = reply_to(frame_of(kPayload, form), kPayload);
  EXPECT_EQ(ipv6.substr(kIpv4At, 8), from_hex("6000000000191140"));
}

TEST(Packet, AChecksumOfZeroIsWrittenAsOnes) {
  for (const bool ipv6 : {false, true}) {
    FrameForm form;
    form.ipv6 = ipv6;
    std::string payload = kPayload + '\0';
    // The last word takes the place of the checksum.
    const std::string reply = reply_to(frame_of(kPayload, form), payload + std::string(2, '\0'));
    const size_t checksum_at = testing::l4_offset_of(reply) + 6;
    payload += reply.substr(checksum_at, 2);
    const std::string ones = reply_to(frame_of(kPayload, form), payload);
    EXPECT_EQ(testing::get16(ones, checksum_at), 0xffff);
    EXPECT_EQ(verdict_of(ones, form.source_port), PacketVerdict::kRequest);
  }
}

TEST(Packet, TheSumOfThePayloadMayBeGiven) {
  const std::string frame = frame_of(kPayload);
  Packet packet;
  ASSERT_EQ(parse_packet(bytes_of(frame), kTestPort, packet), PacketVerdict::kRequest);
  const std::string whole = reply_to(frame, kPayload);
  std::string reply = whole;
  set16(reply, kUdpAt + 6, 0);
  const auto size = static_cast<uint32_t>(kPayload.size());
  finish_udp_checksum_of_sum(packet, size, checksum_add(0, bytes_of(kPayload).data, size),
                             reinterpret_cast<uint8_t*>(reply.data()));
  EXPECT_EQ(reply, whole);
}

TEST(Packet, EveryTruncation) {
  for (const FrameForm& form : forms()) {
    const std::string frame = frame_of(kPayload, form);
    const size_t whole = frame.size() - form.padding.size();
    for (size_t size = 0; size < whole; ++size) {
      ASSERT_EQ(verdict_of(frame.substr(0, size)), PacketVerdict::kTruncated) << size;
    }
    for (size_t size = whole; size <= frame.size(); ++size) {
      ASSERT_EQ(verdict_of(frame.substr(0, size)), PacketVerdict::kRequest) << size;
    }
  }
}

TEST(Packet, EveryBitThatAChecksumCovers) {
  for (const FrameForm& form : forms()) {
    const std::string frame = frame_of(kPayload, form);
    const size_t l3 = testing::l3_offset_of(frame);
    const size_t l4 = testing::l4_offset_of(frame);
    for (size_t bit = l3 * 8; bit < (frame.size() - form.padding.size()) * 8; ++bit) {
      const size_t at = bit / 8;
      // IPv6 has no checksum of its own: UDP's covers the addresses, and lengths by what follows.
      if (form.ipv6 && at < l3 + 8 && at != l3 + 6) continue;
      if (!form.checksum && at >= l4) continue;
      std::string corrupt = frame;
      corrupt[at] = static_cast<char>(corrupt[at] ^ (1 << bit % 8));
      ASSERT_NE(verdict_of(corrupt), PacketVerdict::kRequest) << "bit " << bit % 8 << " of " << at;
    }
  }
}

TEST(Packet, Lengths) {
  const auto with = [](size_t at, uint16_t value, uint32_t keep) {
    std::string frame = frame_of(kPayload);
    set16(frame, at, value);
    testing::mend(frame, testing::kMendAll & ~keep);
    return verdict_of(frame);
  };
  using testing::kMendIpLength;
  using testing::kMendUdpLength;
  EXPECT_EQ(with(kIpv4At + 2, 46, kMendIpLength), PacketVerdict::kTruncated);
  EXPECT_EQ(with(kIpv4At + 2, 19, kMendIpLength), PacketVerdict::kTruncated);
  EXPECT_EQ(with(kIpv4At + 2, 27, kMendIpLength), PacketVerdict::kTruncated);
  EXPECT_EQ(with(kIpv4At + 2, 44, kMendIpLength), PacketVerdict::kTruncated);  // UDP says 25
  EXPECT_EQ(with(kUdpAt + 4, 26, kMendUdpLength), PacketVerdict::kTruncated);
  EXPECT_EQ(with(kUdpAt + 4, 7, kMendUdpLength), PacketVerdict::kTruncated);
  EXPECT_EQ(with(kUdpAt + 4, 0, kMendUdpLength), PacketVerdict::kTruncated);
  // Bytes between the ends of UDP and IP belong to nobody.
  EXPECT_EQ(with(kUdpAt + 4, 20, kMendUdpLength), PacketVerdict::kRequest);
  EXPECT_EQ(with(kUdpAt + 4, 8, kMendUdpLength), PacketVerdict::kRequest);
}

TEST(Packet, Ipv4HeadersThatAreRefused) {
  const auto with = [](size_t at, char value) {
    std::string frame = frame_of(kPayload);
    frame[at] = value;
    return verdict_of(mended(frame));
  };
  EXPECT_EQ(with(kIpv4At, '\x44'), PacketVerdict::kTruncated);
  EXPECT_EQ(with(kIpv4At, '\x55'), PacketVerdict::kUnsupported);
  EXPECT_EQ(with(kIpv4At + 6, '\x20'), PacketVerdict::kFragment);  // more fragments
  EXPECT_EQ(with(kIpv4At + 7, '\x01'), PacketVerdict::kFragment);  // not the first
  EXPECT_EQ(with(kIpv4At + 6, '\x40'), PacketVerdict::kRequest);   // don't fragment
  EXPECT_EQ(with(kIpv4At + 8, '\0'), PacketVerdict::kRequest);     // time to live
  EXPECT_EQ(with(kIpv4At + 9, '\x06'), PacketVerdict::kNotForUs);
  EXPECT_EQ(with(kIpv4At + 12, '\0'), PacketVerdict::kNotForUs);
  EXPECT_EQ(with(kIpv4At + 12, '\xe0'), PacketVerdict::kNotForUs);
  EXPECT_EQ(with(kIpv4At + 16, '\xff'), PacketVerdict::kNotForUs);
}

TEST(Packet, Ipv6HeadersThatAreRefused) {
  FrameForm form;
  form.ipv6 = true;
  const auto with = [&form](size_t at, const std::string& bytes) {
    std::string frame = frame_of(kPayload, form);
    frame.replace(at, bytes.size(), bytes);
    return verdict_of(mended(frame));
  };
  EXPECT_EQ(with(kIpv4At + 6, {50}), PacketVerdict::kNotForUs);
  EXPECT_EQ(with(kIpv4At + 6, {51}), PacketVerdict::kNotForUs);
  EXPECT_EQ(with(kIpv4At + 6, {44}), PacketVerdict::kFragment);
  EXPECT_EQ(with(kIpv4At + 6, {58}), PacketVerdict::kNotForUs);
  EXPECT_EQ(with(kIpv4At + 8, std::string(16, '\0')), PacketVerdict::kNotForUs);
  EXPECT_EQ(with(kIpv4At + 24, "\xff\x02"), PacketVerdict::kNotForUs);
  std::string frame = frame_of(kPayload, form);
  set16(frame, kIpv4At + 40 + 6, 0);
  EXPECT_EQ(verdict_of(frame), PacketVerdict::kBadChecksum);
  frame = frame_of(kPayload, form);
  frame[kIpv4At] = '\x45';
  EXPECT_EQ(verdict_of(frame), PacketVerdict::kUnsupported);
}

using Chain = std::vector<testing::Ipv6Extension>;

constexpr uint8_t kHop = kIpv6HopByHop;
constexpr uint8_t kRoute = kIpv6Routing;
constexpr uint8_t kTarget = kIpv6DestinationOptions;

FrameForm with_chain(const Chain& chain) {
  FrameForm form;
  form.ipv6 = true;
  form.extensions = chain;
  return form;
}

PacketVerdict verdict_of_chain(const Chain& chain) {
  return verdict_of(frame_of(kPayload, with_chain(chain)));
}

// Eight bytes of options: `bytes` and then zeros.
testing::Ipv6Extension options_of(uint8_t type, const std::string& bytes) {
  testing::Ipv6Extension made{type, std::string(1, '\0') + bytes};
  made.rest.resize(7);
  return made;
}

TEST(Packet, Ipv6ExtensionHeadersAreSkipped) {
  using testing::extension_of;
  const std::vector<Chain> chains = {
      {extension_of(kHop)},
      {extension_of(kTarget)},
      {extension_of(kRoute)},
      {extension_of(kRoute, 4)},
      {extension_of(kHop), extension_of(kTarget), extension_of(kRoute), extension_of(kTarget)},
      {extension_of(kTarget, 8), extension_of(kTarget, 8), extension_of(kRoute, 16)},
      {extension_of(kHop, 32)},
      {options_of(kHop, std::string("\5\2\0\0", 4))},  // a router may look at it
      {options_of(kTarget, std::string("\x3e\4abcd", 6))},
      {options_of(kTarget, "")}};
  const std::string plain = frame_of(kPayload, with_chain({}));
  const std::string reply = reply_to(plain, "END\r\n");
  for (const Chain& chain : chains) {
    for (const bool tagged : {false, true}) {
      FrameForm form = with_chain(chain);
      if (tagged) form.vlan_tags = {0x88a8, 0x8100};
      form.padding = "p";
      const std::string frame = frame_of(kPayload, form);
      Packet packet;
      const HeapCopy copy(frame);
      ASSERT_EQ(parse_packet(copy.bytes(), kTestPort, packet), PacketVerdict::kRequest);
      EXPECT_EQ(frame.substr(packet.payload_offset, packet.payload_size), kPayload);
      const Packet again = packet_of_request(copy.bytes());
      EXPECT_EQ(again.payload_offset, packet.payload_offset);
      EXPECT_EQ(again.payload_size, packet.payload_size);
      EXPECT_EQ(parse_packet_without_extensions(copy.bytes(), kTestPort, packet),
                PacketVerdict::kExtensions);
      EXPECT_EQ(parse_packet_headers_without_extensions(copy.bytes(), kTestPort, packet),
                PacketVerdict::kExtensions);
      if (!tagged) {
        EXPECT_EQ(reply_to(frame, "END\r\n"), reply);
      }
    }
  }
}

TEST(Packet, Ipv6ChainsThatAreLeftToOthers) {
  using testing::extension_of;
  // Too many, too long.
  EXPECT_EQ(verdict_of_chain(Chain(kIpv6ExtensionsMax, extension_of(kTarget))),
            PacketVerdict::kRequest);
  EXPECT_EQ(verdict_of_chain(Chain(kIpv6ExtensionsMax + 1, extension_of(kTarget))),
            PacketVerdict::kUnsupported);
  EXPECT_EQ(verdict_of_chain(Chain(60, extension_of(kTarget))), PacketVerdict::kUnsupported);
  EXPECT_EQ(verdict_of_chain({extension_of(kTarget, 33)}), PacketVerdict::kUnsupported);
  EXPECT_EQ(verdict_of_chain({extension_of(kHop, 16), extension_of(kTarget, 17)}),
            PacketVerdict::kUnsupported);
  // Options for all hops come first, and once.
  EXPECT_EQ(verdict_of_chain({extension_of(kTarget), extension_of(kHop)}),
            PacketVerdict::kUnsupported);
  EXPECT_EQ(verdict_of_chain({extension_of(kHop), extension_of(kHop)}),
            PacketVerdict::kUnsupported);
  // A route that goes on; options that are not to be ignored: jumbo payload, home address.
  Chain route = {extension_of(kRoute)};
  route[0].rest[2] = 1;
  EXPECT_EQ(verdict_of_chain(route), PacketVerdict::kUnsupported);
  EXPECT_EQ(verdict_of_chain({options_of(kHop, std::string("\xc2\4\0\1\0\0", 6))}),
            PacketVerdict::kUnsupported);
  EXPECT_EQ(verdict_of_chain({options_of(kTarget, std::string("\xc9\4abcd", 6))}),
            PacketVerdict::kUnsupported);
  EXPECT_EQ(verdict_of_chain({options_of(kTarget, std::string("\x40\4abcd", 6))}),
            PacketVerdict::kUnsupported);
  // Options that do not fit into their header.
  EXPECT_EQ(verdict_of_chain({options_of(kTarget, std::string("\1\5abcd", 6))}),
            PacketVerdict::kTruncated);
  EXPECT_EQ(verdict_of_chain({options_of(kTarget, std::string("\1\3abc\1", 6))}),
            PacketVerdict::kTruncated);
  EXPECT_EQ(verdict_of_chain({options_of(kHop, std::string("\1\xff", 2))}),
            PacketVerdict::kTruncated);
}

// What follows the chain is as without it.
TEST(Packet, WhatFollowsAnIpv6Chain) {
  const Chain chain = {testing::extension_of(kHop), testing::extension_of(kTarget)};
  const std::string frame = frame_of(kPayload, with_chain(chain));
  const auto with = [&frame](size_t at, const std::string& bytes) {
    std::string changed = frame;
    changed.replace(at, bytes.size(), bytes);
    return verdict_of(changed);
  };
  constexpr size_t kChainAt = kIpv4At + 40;
  EXPECT_EQ(with(kChainAt + 8, {44}), PacketVerdict::kFragment);
  EXPECT_EQ(with(kChainAt, {44}), PacketVerdict::kFragment);
  EXPECT_EQ(with(kChainAt + 8, {58}), PacketVerdict::kNotForUs);
  EXPECT_EQ(with(kChainAt + 8, {59}), PacketVerdict::kNotForUs);
  EXPECT_EQ(with(kChainAt + 8, {60}), PacketVerdict::kTruncated);  // ports make up its length
  EXPECT_EQ(with(kChainAt + 1, "\xff"), PacketVerdict::kTruncated);
  EXPECT_EQ(with(kIpv4At + 8, std::string(16, '\0')), PacketVerdict::kNotForUs);
  EXPECT_EQ(with(kChainAt + 16 + 6, {0, 0}), PacketVerdict::kBadChecksum);
  EXPECT_EQ(with(frame.size() - 3, "x"), PacketVerdict::kBadChecksum);
  EXPECT_EQ(verdict_of(frame, 11212), PacketVerdict::kNotForUs);
  for (size_t size = 0; size < frame.size(); ++size) {
    ASSERT_EQ(verdict_of(frame.substr(0, size)), PacketVerdict::kTruncated) << size;
    // IPv6's length agrees with where the frame ends.
    if (size < kChainAt) continue;
    std::string cut = frame.substr(0, size);
    set16(cut, kIpv4At + 4, static_cast<uint16_t>(size - kChainAt));
    ASSERT_EQ(verdict_of(cut), PacketVerdict::kTruncated) << size;
  }
}

TEST(Packet, FramesThatAreNotForUs) {
  FrameForm form;
  EXPECT_EQ(verdict_of(frame_of(kPayload), 11212), PacketVerdict::kNotForUs);
  form.source_port = 0;
  EXPECT_EQ(verdict_of(frame_of(kPayload, form)), PacketVerdict::kNotForUs);
  std::string frame = frame_of(kPayload);
  set16(frame, 12, 0x0806);
  EXPECT_EQ(verdict_of(frame), PacketVerdict::kNotForUs);
  set16(frame, 12, 46);
  EXPECT_EQ(verdict_of(frame), PacketVerdict::kNotForUs);
  frame = frame_of(kPayload);
  frame[0] = '\x01';
  EXPECT_EQ(verdict_of(frame), PacketVerdict::kNotForUs);
  frame = frame_of(kPayload);
  frame[6] = '\xff';
  EXPECT_EQ(verdict_of(frame), PacketVerdict::kNotForUs);
  form = FrameForm{};
  form.vlan_tags = {0x88a8, 0x8100, 0x8100};
  EXPECT_EQ(verdict_of(frame_of(kPayload, form)), PacketVerdict::kUnsupported);
}

}  // namespace
}  // namespace warpcache::net
