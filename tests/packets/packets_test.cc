// SPDX-License-Identifier: Apache-2.0
//
// Plays the cases of this folder (README.md) on every engine: each frame on its own, and where
// frames of a burst are answered in their order, all frames of a case in one burst. test_packets.py
// plays them through the server.
#include <gtest/gtest.h>

#include <tuple>

#include "packets/cases.h"
#include "store/testing/store_fixture.h"

namespace warpcache::packets {
namespace {

void play_one_by_one(Server& server, const Json& steps) {
  size_t number = 0;
  for (const Json& step : steps) {
    const std::string at = "step " + std::to_string(++number);
    if (step.contains("advance_s")) {
      server.advance(step.at("advance_s").get<uint32_t>());
      continue;
    }
    const auto verdict = step.at("verdict").get<std::string>();
    const uint64_t before = server.count_of(verdict);
    add(server, step);
    expect_replies(step.at("out"), server.run(), at);
    EXPECT_EQ(server.count_of(verdict), before + 1) << at << " is not " << verdict;
  }
}

// Time passes between bursts only.
void play_in_bursts(Server& server, const Json& steps) {
  Json want = Json::array();
  for (const Json& step : steps) {
    if (step.contains("advance_s")) {
      expect_replies(want, server.run(), "the burst before time passes");
      want = Json::array();
      server.advance(step.at("advance_s").get<uint32_t>());
      continue;
    }
    add(server, step);
    for (const Json& frame : step.at("out")) want.push_back(frame);
  }
  expect_replies(want, server.run(), "the burst");
}

using Parameters = std::tuple<engine::RigKind, std::string>;

// The cases of a topic on an engine, each with an empty store.
class PacketsTest : public testing::TestWithParam<Parameters> {
 protected:
  template <typename Play>
  void play_each(Play play) {
    const auto& [kind, topic] = GetParam();
    std::ifstream stream(folder() + "/cases/" + topic + ".json");
    const Json file = Json::parse(stream);
    ASSERT_FALSE(file.at("cases").empty());
    engine::RigConfig config;
    config.store = store::quiet_config(uint64_t{64} << 20);
    config.engines = 2;
    config.gpu_blocks = 4;
    std::string why;
    const auto rig = engine::make_rig(kind, config, &why);
    if (rig == nullptr) GTEST_SKIP() << why;
    Server server(*rig, file.at("udp_port").get<uint16_t>());
    for (const Json& content : file.at("cases")) {
      SCOPED_TRACE(content.at("name").get<std::string>());
      rig->store().flush_all(0);
      for (const Json& command : content.at("setup")) {
        const std::string text = bytes_of_text(command.get<std::string>());
        const std::string replies = server.set_up(text);
        EXPECT_EQ(replies.find("ERROR"), std::string::npos) << text << replies;
      }
      play(server, content.at("steps"));
    }
  }
};

TEST_P(PacketsTest, OneByOne) { play_each(play_one_by_one); }

TEST_P(PacketsTest, InOneBurst) {
  if (std::get<0>(GetParam()) != engine::RigKind::kCpu) {
    GTEST_SKIP() << "a GPU orders nothing within a burst";
  }
  play_each(play_in_bursts);
}

std::string test_name(const testing::TestParamInfo<Parameters>& info) {
  return engine::rig_name(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(
    All, PacketsTest,
    testing::Combine(testing::Values(engine::RigKind::kCpu, engine::RigKind::kCudaLaunch,
                                     engine::RigKind::kCudaPersistent, engine::RigKind::kCudaEdge),
                     testing::ValuesIn(topics())),
    test_name);

}  // namespace
}  // namespace warpcache::packets
