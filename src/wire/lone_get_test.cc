// SPDX-License-Identifier: Apache-2.0
#include "wire/lone_get.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "wire/compose.h"
#include "wire/frame.h"
#include "wire/packet.h"
#include "wire/packet_testing.h"
#include "wire/parse.h"

namespace warpcache::wire {
namespace {

using testing::frame_of;
using testing::FrameForm;
using testing::kTestPort;

const std::string kHeader("\x12\x34\0\0\0\1\0\0", 8);

// A frame in words, as the device has it.
struct Aligned {
  explicit Aligned(const std::string& bytes) : words(bytes.size() / 4 + 1), size(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), data());
  }
  uint8_t* data() { return reinterpret_cast<uint8_t*>(words.data()); }
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(words.data()); }
  uint32_t bytes() const { return static_cast<uint32_t>(size); }

  std::vector<uint32_t> words;
  size_t size;
};

// What the long way says of a frame: its only request, if it is that of a lone key.
struct LongWay {
  bool lone = false;
  Packet packet;
  UdpHeader header;
  Request request;
};

LongWay long_way(Aligned& frame) {
  LongWay way;
  const Bytes bytes = {frame.data(), frame.size};
  if (parse_packet(bytes, kTestPort, way.packet) != PacketVerdict::kRequest) return way;
  const Bytes datagram = {frame.data() + way.packet.payload_offset, way.packet.payload_size};
  if (parse_udp_header(datagram, way.header) != UdpVerdict::kRequest) return way;
  const uint32_t offset = way.packet.payload_offset + kUdpHeaderSize;
  FrameState state = {};
  Frame frames[2];
  const FrameResult result =
      frame_datagram(state, {}, datagram.from(kUdpHeaderSize), offset, 0, frames, 2);
  if (result.count != 1 || result.end != FrameEnd::kClose) return way;
  parse_request(frames[0], frame.data(), way.request);
  const Request& request = way.request;
  way.lone = request.op == Op::kGet && request.protocol == Protocol::kText &&
             (request.bits & ~uint32_t{kLastKey | kReturnValue}) == 0 &&
             request.status == Status::kOk;
  return way;
}

std::string long_reply(const Aligned& frame, const LongWay& way, const Result& result) {
  std::string text(4096, '\xee');
  auto* const begin = reinterpret_cast<uint8_t*>(text.data());
  uint8_t* const payload = begin + reply_headers_size(way.packet) + kUdpHeaderSize;
  const uint8_t* const end =
      compose_reply(way.request, result, frame.data(), payload,
                    [&result](uint8_t* at) { return put(at, result.value); });
  const auto size = static_cast<uint32_t>(end - payload) + kUdpHeaderSize;
  compose_reply_headers(frame.data(), way.packet, size, begin);
  UdpHeader header = way.header;
  header.sequence = 0;
  header.count = 1;
  compose_udp_header(header, payload - kUdpHeaderSize);
  finish_udp_checksum(way.packet, size, begin);
  text.resize(pad_frame(begin, reply_headers_size(way.packet) + size));
  return text;
}

std::string short_hit(const Aligned& frame, const LoneGet& request, const Result& result) {
  const uint32_t size = lone_hit_size(request, result.client_flags, result.value_size);
  Aligned out(std::string(size, '\xee'));
  uint8_t* const value = compose_lone_hit(frame.data(), request, result.client_flags,
                                          result.value_size, size, out.data());
  put(value, result.value);
  finish_lone_hit(request, size, out.data());
  return {reinterpret_cast<const char*>(out.data()), size};
}

std::string short_miss(const Aligned& frame, const LoneGet& request) {
  Aligned out(std::string(kEthernetFrameMin, '\xee'));
  EXPECT_EQ(compose_lone_miss(frame.data(), request, out.data()), kEthernetFrameMin);
  return {reinterpret_cast<const char*>(out.data()), kEthernetFrameMin};
}

// Both ways say the same of what the short one takes. Returns whether it takes the frame.
bool expect_same(const std::string& bytes, uint32_t client_flags, const std::string& value) {
  const Aligned frame(bytes);
  const LoneGet request = parse_lone_get(frame.data(), frame.bytes(), kTestPort);
  if (request.key_size == 0) return false;
  Aligned copy(bytes);
  const LongWay way = long_way(copy);
  EXPECT_TRUE(way.lone) << ::testing::PrintToString(bytes);
  if (!way.lone) return true;
  EXPECT_EQ(way.request.key_offset, LoneGet::kKeyOffset);
  EXPECT_EQ(way.request.key_size, request.key_size);
  Result result = {};
  result.outcome = Outcome::kMiss;
  EXPECT_EQ(short_miss(frame, request), long_reply(frame, way, result));
  result.outcome = Outcome::kHit;
  result.client_flags = client_flags;
  result.value = {reinterpret_cast<const uint8_t*>(value.data()), value.size()};
  result.value_size = static_cast<uint32_t>(value.size());
  EXPECT_EQ(short_hit(frame, request, result), long_reply(frame, way, result));
  return true;
}

TEST(LoneGet, EveryKeySizeIsAnsweredAsOnTheLongWay) {
  for (uint32_t size = 1; size <= kKeySizeMax; ++size) {
    for (const bool checksum : {false, true}) {
      for (const size_t padding : {size_t{0}, size_t{1}, size_t{2}, size_t{7}}) {
        FrameForm form;
        form.checksum = checksum;
        form.padding = std::string(padding, '\n');
        const std::string frame =
            frame_of(kHeader + "get " + std::string(size, 'k') + "\r\n", form);
        EXPECT_TRUE(expect_same(frame, size * 7919, std::string(size * 5 % 1300, 'v'))) << size;
      }
    }
  }
}

TEST(LoneGet, LeavesAllElseToTheLongWay) {
  const auto takes = [](const std::string& payload, const FrameForm& form = {}) {
    return expect_same(frame_of(kHeader + payload, form), 0, "v");
  };
  EXPECT_TRUE(takes("get k\r\n"));
  for (const char* payload :
       {"get \r\n", "get k", "get k\r", "get k\n", "get k \r\n", "get a b\r\n", "get  k\r\n",
        "gets k\r\n", "get k\r\nget k\r\n", "get\r\n", "mg k v\r\n", "GET k\r\n", "", "g"}) {
    EXPECT_FALSE(takes(payload)) << payload;
  }
  EXPECT_FALSE(takes("get " + std::string(kKeySizeMax + 1, 'k') + "\r\n"));
  FrameForm form;
  form.ipv6 = true;
  EXPECT_FALSE(takes("get k\r\n", form));
  form = {};
  form.vlan_tags = {0x8100};
  EXPECT_FALSE(takes("get k\r\n", form));
  form = {};
  form.ip_options = std::string(4, '\1');
  EXPECT_FALSE(takes("get k\r\n", form));
  form = {};
  form.source_port = 0;
  EXPECT_FALSE(takes("get k\r\n", form));
  form.source_port = 40000;
  form.destination_port = 11212;
  EXPECT_FALSE(takes("get k\r\n", form));
  EXPECT_FALSE(expect_same(frame_of(std::string("\0\0\0\0\0\2\0\0get k\r\n", 15)), 0, "v"));
}

// Frames of which any byte may be another, with checksums and lengths that are right or not.
TEST(LoneGet, WhateverItTakesTheLongWayTakesToo) {
  std::mt19937_64 random(1);
  const auto below = [&random](uint64_t bound) { return random() % bound; };
  const char kBytes[] = {'\0', ' ', '\r', '\n', 'g', 'k', '\x45', '\x11', '\xff', '\1', '\x7f'};
  uint32_t taken = 0;
  for (int round = 0; round < 300000; ++round) {
    FrameForm form;
    form.checksum = below(2) == 0;
    form.padding = std::string(below(3), 'p');
    std::string payload = kHeader + "get " + std::string(1 + below(20), 'k') + "\r\n";
    if (below(4) == 0) payload += "get k\r\n";
    std::string frame = frame_of(payload, form);
    for (uint64_t changes = below(3); changes > 0; --changes) {
      const char byte = below(3) == 0 ? static_cast<char>(random()) : kBytes[below(sizeof kBytes)];
      frame[below(frame.size())] = byte;
    }
    const uint32_t all = testing::kMendAll;
    testing::mend(frame, below(2) == 0 ? all : static_cast<uint32_t>(below(16)),
                  form.padding.size());
    if (below(20) == 0) frame.resize(below(frame.size()) + 1);
    if (expect_same(frame, static_cast<uint32_t>(random() >> below(64)), "value")) ++taken;
    if (HasFailure()) break;
  }
  EXPECT_GT(taken, 50000u);
}

}  // namespace
}  // namespace warpcache::wire
