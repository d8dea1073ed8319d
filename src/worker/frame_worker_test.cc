// SPDX-License-Identifier: Apache-2.0
//
// Frames through the whole pipeline: port, worker, CPU engine, store.
#include "worker/frame_worker.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/cpu/cpu_engine.h"
#include "engine/testing/store_admin.h"
#include "io/frames/testing/memory_port.h"
#include "net/packet.h"
#include "net/testing/packets.h"
#include "protocol/framing/udp_frame.h"
#include "protocol/testing/messages.h"
#include "store/testing/store_fixture.h"

namespace warpcache::worker {
namespace {

using net::testing::frame_of;
using net::testing::FrameForm;
using protocol::testing::text_of;

constexpr uint16_t kClientPort = 40000;

std::string request(uint16_t id, const std::string& text, const FrameForm& form = {}) {
  std::string header(protocol::kUdpHeaderSize, '\0');
  protocol::compose_udp_header({id, 0, 1}, reinterpret_cast<uint8_t*>(header.data()));
  return frame_of(header + text, form);
}

class FramePipeline : public testing::Test {
 protected:
  static FrameWorkerConfig small_config() {
    FrameWorkerConfig config;
    config.burst_packets_max = 4;
    config.burst_reply_bytes = 1024 * 1024;
    return config;
  }

  FramePipeline() { EXPECT_EQ(worker_.open(), ""); }

  void add(uint16_t id, const std::string& text, const FrameForm& form = {}, uint64_t time = 0) {
    port_.add(request(id, text, form), time);
  }

  // Runs the added frames. Returns "id: text" of each new reply frame.
  std::vector<std::string> replies() {
    worker_.run();
    std::vector<std::string> texts;
    for (const io::MemoryPort::Frame& sent : port_.take_sent()) {
      const Bytes frame = bytes_of(sent.bytes);
      net::Packet packet;
      EXPECT_EQ(net::parse_packet(frame, kClientPort, packet), net::PacketVerdict::kRequest);
      const Bytes payload = frame.sub(packet.payload_offset, packet.payload_size);
      protocol::UdpHeader header;
      (void)protocol::parse_udp_header(payload, header);
      texts.push_back(std::to_string(header.request_id) + ": " +
                      text_of(payload.from(protocol::kUdpHeaderSize)));
      times_.push_back(sent.time_ns);
    }
    return texts;
  }

  std::unique_ptr<store::Store> store_ = store::make_store(store::quiet_config(uint64_t{64} << 20));
  engine::StoreAdmin admin_{*store_};
  engine::CpuEngine engine_{{}, *store_, admin_};
  io::MemoryPort port_;
  // Only 2001:db8::/32 gets replies of any size.
  FrameWorker worker_{small_config(), io::UdpGuard({{{0x20, 0x01, 0x0d, 0xb8}, 32}}, 10), port_,
                      engine_};
  std::vector<uint64_t> times_;  // of all replies
};

TEST_F(FramePipeline, EndsWithTheFrames) {
  add(1, "set a 5 0 3\r\nabc\r\n");
  add(2, "get a\r\n");
  FrameForm form;
  form.ipv6 = true;
  form.vlan_tags = {0x88a8, 0x8100};
  add(3, "mg a v f\r\nmn\r\n", form);
  add(4, "set a 0 0 1 noreply\r\nx\r\n");
  add(5, "get a b\r\n");
  EXPECT_EQ(replies(), (std::vector<std::string>{
                           "1: STORED\r\n", "2: VALUE a 5 3\r\nabc\r\nEND\r\n",
                           "3: VA 3 f5\r\nabc\r\nMN\r\n", "5: VALUE a 0 1\r\nx\r\nEND\r\n"}));
  add(6, "delete a\r\n");
  EXPECT_EQ(replies(), (std::vector<std::string>{"6: DELETED\r\n"}));
}

// Bursts of four frames. Those with usual replies only are sent without descriptors; the order
// stays.
TEST_F(FramePipeline, RepliesBesideTheirRequests) {
  port_.set_frame_room(2048);
  add(1, "set a 5 0 3\r\nabc\r\n");
  for (uint16_t id = 2; id < 6; ++id) add(id, "get a\r\n", {}, id);
  add(6, "get a b\r\n");
  add(7, "get none\r\n");
  const std::string hit = "VALUE a 5 3\r\nabc\r\nEND\r\n";
  EXPECT_EQ(replies(),
            (std::vector<std::string>{"1: STORED\r\n", "2: " + hit, "3: " + hit, "4: " + hit,
                                      "5: " + hit, "6: " + hit, "7: END\r\n"}));
  EXPECT_EQ(times_, (std::vector<uint64_t>{0, 2, 3, 4, 5, 0, 0}));
  EXPECT_EQ(port_.sent_beside(), 4u);
  EXPECT_EQ(port_.counters().requests.get(), 7u);
}

TEST_F(FramePipeline, PinnedValuesAreCutIntoDatagrams) {
  const std::string value(60'000, 'v');
  add(1, "set large 0 0 60000\r\n" + value + "\r\n");
  EXPECT_EQ(replies(), (std::vector<std::string>{"1: STORED\r\n"}));
  FrameForm allowed;
  allowed.ipv6 = true;
  for (uint16_t id = 2; id < 12; ++id) add(id, "get large\r\n", allowed);
  std::string whole;
  for (const std::string& part : replies()) {
    if (part.rfind("11: ", 0) == 0) whole += part.substr(4);
  }
  EXPECT_EQ(whole, "VALUE large 0 60000\r\n" + value + "\r\nEND\r\n");
  EXPECT_EQ(store_->stats().pinned_segments, 0u);
}

TEST_F(FramePipeline, RepliesHaveTheTimesOfTheirRequests) {
  add(1, "set k 0 0 1\r\n1\r\n", {}, 1000);
  add(2, "incr k 41\r\n", {}, 2000);
  EXPECT_EQ(replies(), (std::vector<std::string>{"1: STORED\r\n", "2: 42\r\n"}));
  EXPECT_EQ(times_, (std::vector<uint64_t>{1000, 2000}));
}

// Frames that are not for the server go back to the port; frames with a fault are counted.
TEST_F(FramePipeline, WhatIsNoRequestIsCounted) {
  const std::string good = request(1, "get a\r\n");
  FrameForm other_port;
  other_port.destination_port = 53;
  const std::string dns = request(1, "x", other_port);
  std::string broken = good;
  ++broken.back();
  std::string fragment = good;
  fragment[20] = '\x20';
  net::testing::mend(fragment, net::testing::kMendAll);
  for (const std::string& frame :
       {dns, good.substr(0, 40), broken, fragment, frame_of("8 bytes."), good}) {
    port_.add(frame);
  }
  EXPECT_EQ(replies(), (std::vector<std::string>{"1: END\r\n"}));
  EXPECT_EQ(port_.take_passed_on(), (std::vector<std::string>{dns, fragment}));
  const io::FrameCounters& counters = port_.counters();
  EXPECT_EQ(counters.received.get(), 6u);
  EXPECT_EQ(counters.requests.get(), 1u);
  EXPECT_EQ(counters.not_for_us.get(), 1u);
  EXPECT_EQ(counters.truncated.get(), 1u);
  EXPECT_EQ(counters.bad_checksum.get(), 1u);
  EXPECT_EQ(counters.fragments.get(), 1u);
  EXPECT_EQ(counters.malformed.get(), 1u);
}

// A forged source address must not be sent more than ten times what its request had.
TEST_F(FramePipeline, RepliesToOthersAreNotAmplified) {
  add(1, "set long 0 0 400\r\n" + std::string(400, 'v') + "\r\n");
  EXPECT_EQ(replies(), (std::vector<std::string>{"1: STORED\r\n"}));
  add(2, "get long\r\n");
  add(3, "get " + std::string(40, 'x') + " long\r\n");
  const std::vector<std::string> got = replies();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].substr(0, 13), "3: VALUE long");
  EXPECT_EQ(port_.counters().replies_amplified.get(), 1u);
  // A base64 key is decoded in the frame: its checksum is no longer right.
  add(4, "mg bG9uZw== v b\r\n");
  EXPECT_TRUE(replies().empty());
  EXPECT_EQ(port_.counters().replies_amplified.get(), 2u);
}

TEST_F(FramePipeline, RepliesWithoutSpaceAreDroppedAndCounted) {
  const std::string value(60'000, 'v');
  add(1, "set large 0 0 60000\r\n" + value + "\r\n");
  EXPECT_EQ(replies().size(), 1u);
  std::string keys;
  for (int i = 0; i < 30; ++i) keys += " large";
  add(2, "get" + keys + "\r\n" + std::string(2000, '\n'));  // 1.8 MB of replies
  add(3, "get none\r\n");
  EXPECT_EQ(replies(), (std::vector<std::string>{"3: END\r\n"}));
  EXPECT_EQ(port_.counters().replies_dropped.get(), 1u);
  EXPECT_EQ(store_->stats().pinned_segments, 0u);
}

}  // namespace
}  // namespace warpcache::worker
