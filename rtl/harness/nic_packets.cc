// SPDX-License-Identifier: Apache-2.0
//
// Cases of tests/packets through the NIC cache, frame by frame. In a second run each get is sent
// twice, so that the cache may answer the one whose reply is compared; in a third all frames of a
// case that no time lies between are sent in a burst.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "case_files.h"
#include "nic_host.h"

namespace warpcache::rtl {
namespace {

enum class Way { kSingle, kRepeated, kBurst };
constexpr size_t kSetUpMax = 1400;  // bytes of a command in one datagram

struct Player {
  NicSim& sim;
  NicHost& host;
  std::string name;
  bool failed = false;

  void fail(const std::string& what) {
    std::printf("FAILED %s: %s\n", name.c_str(), what.c_str());
    failed = true;
  }
  std::vector<std::string> settled() {
    if (!settle(sim, host)) {
      fail("it hangs");
      std::exit(1);
    }
    return sim.wire().take();
  }
  // In any order where the host answers some and the cache others.
  void compare(std::vector<std::string> want, const std::vector<std::string>& got) {
    if (want.size() != got.size())
      fail("frames: " + std::to_string(got.size()) + " instead of " + std::to_string(want.size()));
    for (const std::string& frame : got) {
      const std::string hex = hex_of(frame);
      const auto found = std::find_if(want.begin(), want.end(),
                                      [&](const std::string& one) { return matches(one, hex); });
      if (found == want.end()) {
        fail("\n  got  " + hex + "\n  want " + (want.empty() ? "nothing more" : want.front()));
        return;
      }
      want.erase(found);
    }
  }
};

bool play(NicSim& sim, NicHost& host, const Json& test, const std::string& name, Way way) {
  Player player{sim, host,
                name + (way == Way::kRepeated ? " (repeated)"
                        : way == Way::kBurst  ? " (burst)"
                                              : "")};
  sim.wire().send(request_frame("flush_all\r\n"), false);
  for (const Json& command : test.at("setup"))
    sim.wire().send(request_frame(bytes_of_text(command.get<std::string>())), false);
  player.settled();
  std::vector<std::string> want;
  for (const Json& step : test.at("steps")) {
    if (step.contains("advance_s")) {
      player.compare(std::exchange(want, {}), player.settled());
      advance(sim, host, step.at("advance_s").get<uint32_t>());
      continue;
    }
    const std::string frame = bytes_of_hex(step.at("in").get<std::string>());
    if (frame.empty()) continue;  // a MAC never delivers it
    const bool get = step.at("verdict").get<std::string>() == "request" &&
                     (frame.find("\0\0get ", 0, 6) != std::string::npos ||
                      frame.find("\0\0gets ", 0, 7) != std::string::npos);
    if (way == Way::kRepeated && get) {
      sim.wire().send(frame, false);
      player.settled();
    }
    for (const Json& out : step.at("out")) want.push_back(out.get<std::string>());
    sim.wire().send(frame, false);
    if (way != Way::kBurst) player.compare(std::exchange(want, {}), player.settled());
  }
  player.compare(std::exchange(want, {}), player.settled());
  return !player.failed;
}

bool fits(const Json& test) {
  return std::all_of(test.at("setup").begin(), test.at("setup").end(), [](const Json& command) {
    return bytes_of_text(command.get<std::string>()).size() <= kSetUpMax;
  });
}

}  // namespace

int play_packets(const NicOptions& options) {
  uint32_t passed = 0;
  uint32_t failed = 0;
  uint32_t left_out = 0;
  uint32_t answered = 0;
  for (const std::string& file : options.files) {
    const Json cases = Json::parse(std::ifstream(file));
    const std::string topic = file.substr(file.rfind('/') + 1);
    SimConfig config;
    config.seed = options.seed;
    config.hold_percent = options.hold;
    config.udp_port = cases.at("udp_port").get<uint16_t>();
    NicSim sim(config);
    NicHost host(options.seed, options.delay);
    for (const Json& test : cases.at("cases")) {
      const std::string name = topic + ": " + test.at("name").get<std::string>();
      if (!fits(test)) {
        ++left_out;
        continue;
      }
      bool right = true;
      for (const Way way : {Way::kSingle, Way::kRepeated, Way::kBurst})
        right = play(sim, host, test, name, way) && right;
      ++(right ? passed : failed);
    }
    answered += sim.counter(kAnswered);
  }
  std::printf("%u passed, %u failed, %u left out; %u gets answered by the cache\n", passed, failed,
              left_out, answered);
  return failed == 0 && passed != 0 ? 0 : 1;
}

}  // namespace warpcache::rtl
