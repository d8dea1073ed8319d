// SPDX-License-Identifier: Apache-2.0
//
// Recorded frames through the whole pipeline: replay transport, worker, CPU engine, store.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/cpu/cpu_engine.h"
#include "engine/testing/store_admin.h"
#include "io/frames/replay_transport.h"
#include "net/packet.h"
#include "net/testing/packets.h"
#include "protocol/framing/udp_frame.h"
#include "protocol/testing/messages.h"
#include "store/testing/store_fixture.h"
#include "worker/worker.h"

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

class ReplayPipeline : public testing::Test {
 protected:
  ReplayPipeline()
      : store_(store::make_store(store::quiet_config(uint64_t{64} << 20))),
        admin_(*store_),
        engine_({}, *store_, admin_),
        transport_({}, input_),
        worker_({}, transport_, engine_) {}

  void add(uint16_t id, const std::string& text, const FrameForm& form = {}) {
    input_.add(bytes_of(request(id, text, form)));
  }

  // Replays the added frames. Returns "id: text" of each new reply frame.
  std::vector<std::string> replies() {
    worker_.run();
    std::vector<std::string> texts;
    for (; seen_ < transport_.replies().size(); ++seen_) {
      const Bytes frame = transport_.replies()[seen_];
      net::Packet packet;
      EXPECT_EQ(net::parse_packet(frame, kClientPort, packet), net::PacketVerdict::kRequest);
      const Bytes payload = frame.sub(packet.payload_offset, packet.payload_size);
      protocol::UdpHeader header;
      (void)protocol::parse_udp_header(payload, header);
      texts.push_back(std::to_string(header.request_id) + ": " +
                      text_of(payload.from(protocol::kUdpHeaderSize)));
    }
    return texts;
  }

  std::unique_ptr<store::Store> store_;
  engine::StoreAdmin admin_;
  engine::CpuEngine engine_;
  io::FrameList input_;
  io::ReplayTransport transport_;
  Worker worker_;
  size_t seen_ = 0;
};

TEST_F(ReplayPipeline, EndsWithTheFrames) {
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

TEST_F(ReplayPipeline, PinnedValuesAreCutIntoDatagrams) {
  const std::string value(60'000, 'v');
  add(1, "set large 0 0 60000\r\n" + value + "\r\n");
  EXPECT_EQ(replies(), (std::vector<std::string>{"1: STORED\r\n"}));
  for (uint16_t id = 2; id < 12; ++id) add(id, "get large\r\n");
  std::string whole;
  for (const std::string& part : replies()) {
    if (part.rfind("11: ", 0) == 0) whole += part.substr(4);
  }
  EXPECT_EQ(whole, "VALUE large 0 60000\r\n" + value + "\r\nEND\r\n");
  EXPECT_EQ(store_->stats().pinned_segments, 0u);
}

TEST_F(ReplayPipeline, RepliesHaveTheTimesOfTheirRequests) {
  input_.add(bytes_of(request(1, "set k 0 0 1\r\n1\r\n")), 1000);
  input_.add(bytes_of(request(2, "incr k 41\r\n")), 2000);
  EXPECT_EQ(replies(), (std::vector<std::string>{"1: STORED\r\n", "2: 42\r\n"}));
  EXPECT_EQ(transport_.replies().time_ns(1), 2000u);
}

}  // namespace
}  // namespace warpcache::worker
