// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "io/frames/replay_transport.h"
#include "net/packet.h"
#include "net/testing/packets.h"
#include "protocol/framing/udp_frame.h"
#include "protocol/testing/messages.h"

namespace warpcache::io {
namespace {

using net::PacketVerdict;
using net::testing::frame_of;
using net::testing::FrameForm;
using protocol::testing::text_of;

std::string datagram(uint16_t id, const std::string& text, uint16_t count = 1) {
  std::string bytes(protocol::kUdpHeaderSize, '\0');
  protocol::compose_udp_header({id, 0, count}, reinterpret_cast<uint8_t*>(bytes.data()));
  return bytes + text;
}

// Takes the part of the worker, and records the calls of observer and releaser.
class ReplayTest : public testing::Test, protected SessionObserver, protected PinReleaser {
 protected:
  static constexpr uint32_t kArenaBytes = 2 * kChunkBytesMax;

  void SetUp() override { memory_.resize(kArenaBytes); }
  void opened(SessionStorage&, int) override {}
  void closed(SessionStorage&) override { FAIL(); }
  bool holds_body(const SessionStorage&) const override { return false; }
  void cancel_body(SessionStorage&) override { FAIL(); }
  void release(uint32_t pin) override { released_.push_back(pin); }

  void start(uint32_t burst_frames_max = 64) {
    ReplayConfig config;
    config.burst_frames_max = burst_frames_max;
    transport_ = std::make_unique<ReplayTransport>(config, input_);
    transport_->attach(*this, *this);
  }

  void add(const std::string& frame) { input_.add(bytes_of(frame), ++time_ns_); }

  bool receive() {
    arena_ = {memory_.data(), kArenaBytes, 0};
    chunks_.clear();
    return transport_->receive(arena_, chunks_, 0);
  }

  std::string message(size_t chunk) const {
    return text_of({memory_.data() + chunks_[chunk].offset, chunks_[chunk].size});
  }

  void complete(size_t chunk, const std::vector<std::string>& parts, uint32_t last_pin = 0) {
    std::vector<TxSpan> spans;
    spans.reserve(parts.size());
    for (const std::string& part : parts) {
      spans.push_back({bytes_of(part).data, static_cast<uint32_t>(part.size()), 0});
    }
    if (last_pin != 0) spans.back().pin = last_pin;
    transport_->complete(chunks_[chunk], {}, spans.data(), static_cast<uint32_t>(spans.size()));
  }

  // The payload of a reply frame, after a check of its headers.
  std::string payload_of(size_t reply, protocol::UdpHeader& header) const {
    const Bytes frame = transport_->replies()[reply];
    net::Packet packet;
    EXPECT_EQ(net::parse_packet(frame, 40000, packet), PacketVerdict::kRequest);
    const Bytes payload = frame.sub(packet.payload_offset, packet.payload_size);
    EXPECT_LE(payload.size, protocol::kUdpDatagramMax);
    (void)protocol::parse_udp_header(payload, header);
    return text_of(payload.from(protocol::kUdpHeaderSize));
  }

  FrameList input_;
  std::unique_ptr<ReplayTransport> transport_;
  std::vector<uint8_t> memory_;
  InputArena arena_;
  std::vector<RxChunk> chunks_;
  std::vector<uint32_t> released_;
  uint64_t time_ns_ = 0;
};

TEST_F(ReplayTest, BurstsUntilTheEnd) {
  for (int i = 0; i < 5; ++i) add(frame_of(datagram(1, "message " + std::to_string(i))));
  start(2);
  std::vector<std::string> seen;
  std::vector<size_t> bursts;
  while (receive()) {
    bursts.push_back(chunks_.size());
    for (size_t i = 0; i < chunks_.size(); ++i) {
      EXPECT_TRUE(chunks_[i].datagram && chunks_[i].session == nullptr);
      seen.push_back(message(i));
      complete(i, {});
    }
    transport_->flush();
  }
  EXPECT_EQ(bursts, (std::vector<size_t>{2, 2, 1}));
  EXPECT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen.back(), "message 4");
  EXPECT_TRUE(transport_->replies().empty());
  // What is added later comes later.
  add(frame_of(datagram(1, "late")));
  ASSERT_TRUE(receive());
  EXPECT_EQ(message(0), "late");
  EXPECT_FALSE(receive());
}

TEST_F(ReplayTest, AFullArenaEndsTheBurst) {
  for (int i = 0; i < 4; ++i) add(frame_of(datagram(1, std::string(30000, 'x'))));
  start();
  ASSERT_TRUE(receive());
  EXPECT_EQ(chunks_.size(), 3u);
  ASSERT_TRUE(receive());
  EXPECT_EQ(chunks_.size(), 1u);
}

TEST_F(ReplayTest, WhatIsNoRequestIsDroppedAndCounted) {
  const std::string good = frame_of(datagram(1, "x"));
  add(good.substr(0, 40));
  std::string bad = good;
  ++bad.back();
  add(bad);
  bad = good;
  bad[20] = '\x20';
  net::testing::mend(bad, net::testing::kMendAll);
  add(bad);
  bad = good;
  bad[14] = '\x65';
  add(bad);
  FrameForm form;
  form.destination_port = 53;
  add(frame_of(datagram(1, "x"), form));
  add(frame_of("8 bytes."));
  add(frame_of(datagram(1, "x", 2)));
  add(good);
  start();
  ASSERT_TRUE(receive());
  ASSERT_EQ(chunks_.size(), 1u);
  EXPECT_EQ(transport_->frame_count(PacketVerdict::kTruncated), 1u);
  EXPECT_EQ(transport_->frame_count(PacketVerdict::kBadChecksum), 1u);
  EXPECT_EQ(transport_->frame_count(PacketVerdict::kFragment), 1u);
  EXPECT_EQ(transport_->frame_count(PacketVerdict::kUnsupported), 1u);
  EXPECT_EQ(transport_->frame_count(PacketVerdict::kNotForUs), 1u);
  EXPECT_EQ(transport_->frame_count(PacketVerdict::kRequest), 3u);
  EXPECT_EQ(transport_->counters().datagrams_received.get(), 3u);
  EXPECT_EQ(transport_->counters().datagrams_malformed.get(), 2u);
}

TEST_F(ReplayTest, RepliesComeInTheOrderOfTheRequests) {
  for (uint16_t i = 0; i < 3; ++i) add(frame_of(datagram(i, "x")));
  start();
  ASSERT_TRUE(receive());
  const std::string large(2000, 'y');
  complete(2, {"third"});
  complete(0, {"first"});
  complete(1, {large});
  EXPECT_TRUE(transport_->replies().empty());
  transport_->flush();
  ASSERT_EQ(transport_->replies().size(), 4u);
  EXPECT_EQ(transport_->counters().datagrams_sent.get(), 4u);
  std::vector<uint16_t> ids;
  for (size_t i = 0; i < 4; ++i) {
    protocol::UdpHeader header;
    (void)payload_of(i, header);
    ids.push_back(header.request_id);
    EXPECT_EQ(transport_->replies().time_ns(i), header.request_id + 1u);
    EXPECT_EQ(header.sequence, i == 2 ? 1 : 0);
  }
  EXPECT_EQ(ids, (std::vector<uint16_t>{0, 1, 1, 2}));
}

TEST_F(ReplayTest, RepliesAreCutWhereTheyMustBe) {
  for (const uint32_t size : {1u, 1391u, 1392u, 1393u, 2784u, 2785u, 100'000u}) {
    FrameForm form;
    form.ipv6 = size % 2 == 0;
    input_.clear();
    add(frame_of(datagram(static_cast<uint16_t>(size), "x"), form));
    start();
    ASSERT_TRUE(receive());
    std::string reply(size, 0);
    for (size_t i = 0; i < size; ++i) reply[i] = static_cast<char>(i % 251);
    const size_t half = size / 2;
    complete(0, {reply.substr(0, half), "", reply.substr(half)});
    transport_->flush();
    ASSERT_EQ(transport_->replies().size(), protocol::udp_datagram_count(size));
    std::string whole;
    for (size_t i = 0; i < transport_->replies().size(); ++i) {
      protocol::UdpHeader header;
      const std::string part = payload_of(i, header);
      EXPECT_EQ(part.size(), protocol::udp_payload_size(size, static_cast<uint32_t>(i)));
      EXPECT_EQ(header.request_id, static_cast<uint16_t>(size));
      EXPECT_EQ(header.sequence, i);
      EXPECT_EQ(header.count, transport_->replies().size());
      whole += part;
    }
    EXPECT_EQ(whole, reply);
  }
}

TEST_F(ReplayTest, PinsAreGivenBackOnce) {
  add(frame_of(datagram(1, "x")));
  add(frame_of(datagram(2, "x")));
  start();
  ASSERT_TRUE(receive());
  complete(0, {"head", "pinned"}, 7);
  complete(1, {"none", ""}, 8);
  transport_->flush();
  EXPECT_EQ(released_, (std::vector<uint32_t>{7, 8}));
}

}  // namespace
}  // namespace warpcache::io
