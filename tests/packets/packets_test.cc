// SPDX-License-Identifier: Apache-2.0
//
// Plays the cases of this folder (README.md) on every backend that sees frames: each frame on its
// own, and where frames of a burst are answered in their order, all frames of a case in one burst.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "net/packet.h"
#include "packets/backend.h"

namespace warpcache::packets {
namespace {

using Json = nlohmann::json;
using net::PacketVerdict;

// Where the cases are.
std::string folder() {
  const char* const elsewhere = std::getenv("PACKETS_FOLDER");
  return elsewhere != nullptr ? elsewhere : PACKETS_FOLDER;
}

std::vector<std::string> topics() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder() + "/cases")) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Characters of the file up to U+00FF are bytes.
std::string bytes_of_text(const std::string& utf8) {
  std::string bytes;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto lead = static_cast<uint8_t>(utf8[i]);
    if (lead < 0x80) {
      bytes += utf8[i];
    } else {
      bytes += static_cast<char>((lead & 3) << 6 | (static_cast<uint8_t>(utf8[++i]) & 0x3f));
    }
  }
  return bytes;
}

std::vector<uint8_t> bytes_of_hex(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::string hex_of(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string hex;
  for (const char byte : bytes) {
    hex += kDigits[static_cast<uint8_t>(byte) >> 4];
    hex += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return hex;
}

// `xx` stands for any byte.
bool matches(const std::string& want, const std::string& got) {
  return want.size() == got.size() && std::equal(want.begin(), want.end(), got.begin(),
                                                 [](char w, char g) { return w == 'x' || w == g; });
}

// Frames so far with a verdict of README.md.
uint64_t count_of(const Backend& backend, const std::string& verdict) {
  static constexpr std::array<const char*, net::kPacketVerdicts> kNames = {
      "request", "not_for_us", "truncated", "bad_checksum", "fragment", "unsupported"};
  if (verdict == "malformed") return backend.malformed();
  const auto* const name = std::find(kNames.begin(), kNames.end(), verdict);
  if (name == kNames.end()) return UINT64_MAX;
  const auto index = static_cast<PacketVerdict>(name - kNames.begin());
  return backend.count(index) - (index == PacketVerdict::kRequest ? backend.malformed() : 0);
}

void expect_replies(const Json& want, const std::vector<std::string>& frames,
                    const std::string& at) {
  std::vector<std::string> got;
  for (const std::string& frame : frames) got.push_back(hex_of(frame));
  ASSERT_EQ(got.size(), want.size()) << at;
  for (size_t i = 0; i < got.size(); ++i) {
    const auto frame = want[i].get<std::string>();
    EXPECT_TRUE(matches(frame, got[i]))
        << at << ", reply " << i << "\nwant " << frame << "\ngot  " << got[i];
  }
}

void add(Backend& backend, const Json& step) {
  const std::vector<uint8_t> frame = bytes_of_hex(step.at("in").get<std::string>());
  backend.add({frame.data(), frame.size()});
}

void play_one_by_one(Backend& backend, const Json& steps) {
  size_t number = 0;
  for (const Json& step : steps) {
    const std::string at = "step " + std::to_string(++number);
    if (step.contains("advance_s")) {
      backend.advance(step.at("advance_s").get<uint32_t>());
      continue;
    }
    const auto verdict = step.at("verdict").get<std::string>();
    const uint64_t before = count_of(backend, verdict);
    add(backend, step);
    expect_replies(step.at("out"), backend.run(), at);
    EXPECT_EQ(count_of(backend, verdict), before + 1) << at << " is not " << verdict;
  }
}

// The cases of a topic, each on a new server.
class PacketsTest : public testing::TestWithParam<std::string> {
 protected:
  using MakeBackend = std::unique_ptr<Backend> (*)(uint16_t udp_port);

  template <typename Play>
  void play_each(MakeBackend make, Play play) {
    std::ifstream stream(folder() + "/cases/" + GetParam() + ".json");
    const Json file = Json::parse(stream);
    ASSERT_FALSE(file.at("cases").empty());
    for (const Json& content : file.at("cases")) {
      SCOPED_TRACE(content.at("name").get<std::string>());
      const auto made = make(file.at("udp_port").get<uint16_t>());
      if (made == nullptr) GTEST_SKIP() << "there is no GPU";
      Backend& backend = *made;
      for (const Json& command : content.at("setup")) {
        const std::string text = bytes_of_text(command.get<std::string>());
        const std::string replies = backend.set_up(text);
        EXPECT_EQ(replies.find("ERROR"), std::string::npos) << text << replies;
      }
      play(backend, content.at("steps"));
    }
  }
};

TEST_P(PacketsTest, OneByOne) { play_each(make_cpu_backend, play_one_by_one); }

#if defined(WARPCACHE_HAVE_CUDA)
TEST_P(PacketsTest, OneByOneOnTheGpu) {
  play_each([](uint16_t udp_port) { return make_gpu_backend(udp_port, false); }, play_one_by_one);
}
TEST_P(PacketsTest, OneByOneStayingOnTheGpu) {
  play_each([](uint16_t udp_port) { return make_gpu_backend(udp_port, true); }, play_one_by_one);
}
#endif

// Time passes between bursts only.
TEST_P(PacketsTest, InOneBurst) {
  play_each(make_cpu_backend, [](Backend& backend, const Json& steps) {
    Json want = Json::array();
    for (const Json& step : steps) {
      if (step.contains("advance_s")) {
        expect_replies(want, backend.run(), "the burst before time passes");
        want = Json::array();
        backend.advance(step.at("advance_s").get<uint32_t>());
        continue;
      }
      add(backend, step);
      for (const Json& frame : step.at("out")) want.push_back(frame);
    }
    expect_replies(want, backend.run(), "the burst");
  });
}

std::string test_name(const testing::TestParamInfo<std::string>& topic) { return topic.param; }

INSTANTIATE_TEST_SUITE_P(All, PacketsTest, testing::ValuesIn(topics()), test_name);

}  // namespace
}  // namespace warpcache::packets
