// SPDX-License-Identifier: Apache-2.0
//
// The cases and random frames, with the NIC cache's program before the server: it answers what it
// can, and passes all else on. Whoever answers, the reply is the same. Before each frame every item
// that can be copied is.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nic_cache/store_copies.h"
#include "nic_cache/testing/loaded_program.h"
#include "packets/cases.h"
#include "packets/random_frames.h"
#include "store/testing/store_fixture.h"

namespace warpcache::packets {
namespace {

engine::RigConfig config_with(nic_cache::CopyTable& table) {
  engine::RigConfig config;
  config.store = store::quiet_config(uint64_t{64} << 20);
  config.store.copies = nic_cache::hooks_of(table);
  config.engines = 2;
  return config;
}

// A server behind the program.
class Fronted {
 public:
  Fronted(nic_cache::LoadedProgram& program, uint16_t udp_port)
      : program_(program),
        rig_(engine::make_rig(engine::RigKind::kCpu, config_with(program.table()), &why_)),
        server_(*rig_, udp_port) {
    program_.control().generation = 0;
    program_.control().now = store().clock().now;
    program_.set_port(udp_port);
  }
  ~Fronted() {
    const std::vector<std::string> keys = all_keys();
    for (const std::string& key : keys) program_.table().drop(bytes_of(key));
    end_grace();
  }
  Fronted(const Fronted&) = delete;
  Fronted& operator=(const Fronted&) = delete;

  Server& server() { return server_; }
  uint64_t answered() const { return answered_; }

  std::vector<std::string> answer(const std::string& frame) {
    copy_all();
    if (is_for_one_host(frame)) program_.listen_to(frame);
    const std::string reply = program_.run(frame);
    end_grace();
    if (!reply.empty()) {
      ++answered_;
      note_hits();
      return {reply};
    }
    server_.add(frame);
    return server_.run();
  }

 private:
  store::Store& store() { return dynamic_cast<store::Store&>(rig_->store()); }

  std::vector<std::string> all_keys() {
    std::vector<std::string> keys;
    uint64_t cursor = 0;
    while (cursor != store::StoreOwner::kWalkEnd) {
      const Status status = store().walk(cursor, [&](const store::WalkedItem& item) {
        keys.emplace_back(reinterpret_cast<const char*>(item.key.data), item.key.size);
      });
      EXPECT_EQ(status, Status::kOk);
    }
    return keys;
  }
  void copy_all() {
    for (const std::string& key : all_keys()) {
      store().visit_locked(bytes_of(key), [this](const store::Item& item) {
        nic_cache::copy_item(program_.table(), item);
      });
    }
  }
  // The server is at every address that a host can have.
  static bool is_for_one_host(const std::string& frame) {
    if (net::testing::l4_offset_of(frame) + 8 > frame.size() || (frame[0] & 1) != 0) return false;
    const size_t l3 = net::testing::l3_offset_of(frame);
    if ((frame[l3] & 0xf0) == 0x60) return frame[l3 + 24] != '\xff';
    const uint8_t first = net::testing::byte_at(frame, l3 + 16);
    return first != 0 && first < 224;
  }
  void note_hits() {
    std::vector<std::vector<uint8_t>> keys;
    program_.table().take_touched(program_.program().memory().set_count, &keys);
    for (const std::vector<uint8_t>& key : keys) store().note_read({key.data(), key.size()});
  }
  // No run is under way.
  void end_grace() {
    if (program_.table().retire_begin()) program_.table().retire_end();
  }

  nic_cache::LoadedProgram& program_;
  std::string why_;
  std::unique_ptr<engine::Rig> rig_;
  Server server_;
  uint64_t answered_ = 0;
};

class NicCachePackets : public testing::Test {
 protected:
  void SetUp() override {
    const std::string failure = program_.load();
    if (!failure.empty()) GTEST_SKIP() << failure;
  }

  nic_cache::LoadedProgram program_;
};

TEST_F(NicCachePackets, EveryCaseIsAnsweredAlike) {
  uint64_t answered = 0;
  for (const std::string& topic : topics()) {
    std::ifstream stream(folder() + "/cases/" + topic + ".json");
    const Json file = Json::parse(stream);
    for (const Json& content : file.at("cases")) {
      SCOPED_TRACE(topic + ": " + content.at("name").get<std::string>());
      Fronted fronted(program_, file.at("udp_port").get<uint16_t>());
      for (const Json& command : content.at("setup")) {
        (void)fronted.server().set_up(bytes_of_text(command.get<std::string>()));
      }
      size_t number = 0;
      for (const Json& step : content.at("steps")) {
        const std::string at = "step " + std::to_string(++number);
        if (step.contains("advance_s")) {
          fronted.server().advance(step.at("advance_s").get<uint32_t>());
          continue;
        }
        const std::vector<uint8_t> frame = bytes_of_hex(step.at("in").get<std::string>());
        expect_replies(step.at("out"), fronted.answer({frame.begin(), frame.end()}), at);
      }
      answered += fronted.answered();
    }
  }
  EXPECT_GT(answered, 10u);
}

// The same frames go to a server with the program and to one without. CAS ids are given in the same
// order, and so are equal.
TEST_F(NicCachePackets, RandomFramesAreAnsweredAlike) {
  constexpr int kFrames = 20'000;
  RandomFrames frames(1);
  Fronted fronted(program_, net::testing::kTestPort);
  std::string why;
  engine::RigConfig config = config_with(program_.table());
  config.store.copies = {};
  const auto rig = engine::make_rig(engine::RigKind::kCpu, config, &why);
  Server plain(*rig, net::testing::kTestPort);
  for (int i = 0; i < kFrames; ++i) {
    const std::string frame =
        frames.one_in(2) ? RandomFrames::get_frame(frames.keys()[frames.below(8)]) : frames.frame();
    plain.add(frame);
    const std::vector<std::string> want = plain.run();
    const std::vector<std::string> got = fronted.answer(frame);
    ASSERT_EQ(got, want) << "frame " << i << ": " << hex_of(frame);
  }
  EXPECT_GT(fronted.answered(), kFrames / 8u);
}

}  // namespace
}  // namespace warpcache::packets
