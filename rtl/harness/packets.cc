// SPDX-License-Identifier: Apache-2.0
//
// packets CASE-FILE... [--skip FILE:CASE]... [--hold PERCENT] [--seed N]: plays cases of
// tests/packets against the core: frame by frame, and all frames of a case that no time lies
// between in a burst. Set-ups are sent as frames, too; CAS ids that they give are set in a
// register.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "case_files.h"
#include "frames.h"
#include "sim.h"

namespace warpcache::rtl {
namespace {

// `ms KEY SIZE F<flags> E<cas>` as a text command; the CAS id in `cas`.
std::string plain_set_of(const std::string& command, uint64_t& cas) {
  const size_t end = command.find("\r\n");
  const std::string line = command.substr(0, end);
  std::vector<std::string> words;
  for (size_t at = 0; at < line.size();) {
    const size_t blank = std::min(line.find(' ', at), line.size());
    if (blank > at) words.push_back(line.substr(at, blank - at));
    at = blank + 1;
  }
  std::string flags = "0";
  for (size_t i = 3; i < words.size(); ++i) {
    if (words[i][0] == 'F') flags = words[i].substr(1);
    if (words[i][0] == 'E') cas = std::stoull(words[i].substr(1));
  }
  return "set " + words[1] + " " + flags + " 0 " + words[2] + command.substr(end);
}

struct Player {
  Sim& sim;
  std::string name;
  bool failed = false;
  uint64_t cas = 1'000'000;

  void fail(const std::string& what) {
    std::printf("FAILED %s: %s\n", name.c_str(), what.c_str());
    failed = true;
  }
  void idle() {
    if (!sim.run_until_idle()) {
      fail("the core hangs");
      std::exit(1);
    }
  }
  void set_up(const Json& commands) {
    sim.send(request_frame("flush_all\r\n"));
    idle();
    for (const Json& command : commands) {
      std::string bytes = bytes_of_text(command.get<std::string>());
      uint64_t given = cas++;
      if (bytes.compare(0, 3, "ms ") == 0) bytes = plain_set_of(bytes, given);
      sim.set_next_cas(given);
      sim.send(request_frame(bytes));
      idle();
    }
    sim.set_next_cas(cas += 1000);
    sim.take();
  }
  void compare(const std::vector<std::string>& want, const std::vector<std::string>& got) {
    if (want.size() != got.size()) {
      fail("frames: " + std::to_string(got.size()) + " instead of " + std::to_string(want.size()));
    }
    for (size_t i = 0; i < std::min(want.size(), got.size()); ++i) {
      const std::string hex = hex_of(got[i]);
      if (!matches(want[i], hex)) fail("\n  want " + want[i] + "\n  got  " + hex);
    }
  }
};

const std::map<std::string, CoreCounter> kVerdicts = {
    {"request", kRequests},         {"not_for_us", kNotForUs}, {"truncated", kTruncated},
    {"bad_checksum", kBadChecksum}, {"fragment", kFragments},  {"unsupported", kUnsupported},
    {"malformed", kMalformed}};

bool play(Sim& sim, const Json& test, const std::string& name, bool burst) {
  Player player{sim, name + (burst ? " (burst)" : "")};
  player.set_up(test.at("setup"));
  std::vector<std::string> want;
  for (const Json& step : test.at("steps")) {
    if (step.contains("advance_s")) {
      if (burst) {
        player.idle();
        player.compare(std::exchange(want, {}), sim.take());
      }
      sim.advance(step.at("advance_s").get<uint32_t>());
      continue;
    }
    const std::string frame = bytes_of_hex(step.at("in").get<std::string>());
    for (const Json& out : step.at("out")) want.push_back(out.get<std::string>());
    if (burst) {
      if (!frame.empty()) sim.send(frame);
      continue;
    }
    const std::string verdict = step.at("verdict").get<std::string>();
    const uint32_t before = sim.counter(kVerdicts.at(verdict));
    if (!frame.empty()) sim.send(frame);
    player.idle();
    player.compare(std::exchange(want, {}), sim.take());
    // A MAC never delivers a frame without bytes.
    if (!frame.empty() && sim.counter(kVerdicts.at(verdict)) != before + 1) {
      player.fail("not counted as " + verdict);
    }
  }
  if (burst) {
    player.idle();
    player.compare(want, sim.take());
  }
  return !player.failed;
}

int run(const std::vector<std::string>& files, const std::set<std::string>& skipped,
        SimConfig config) {
  uint32_t passed = 0;
  uint32_t failed = 0;
  uint32_t left_out = 0;
  for (const std::string& file : files) {
    const Json cases = Json::parse(std::ifstream(file));
    std::string topic = file.substr(file.rfind('/') + 1);
    topic = topic.substr(0, topic.find('.'));
    config.udp_port = cases.at("udp_port").get<uint16_t>();
    Sim sim(config);
    for (const Json& test : cases.at("cases")) {
      const std::string name = topic + ": " + test.at("name").get<std::string>();
      if (skipped.count(name) != 0 || skipped.count(topic + ": *") != 0) {
        ++left_out;
        continue;
      }
      const bool single = play(sim, test, name, false);
      const bool burst = play(sim, test, name, true);
      ++(single && burst ? passed : failed);
    }
  }
  std::printf("%u passed, %u failed, %u not supported\n", passed, failed, left_out);
  return failed == 0 && passed != 0 ? 0 : 1;
}

}  // namespace
}  // namespace warpcache::rtl

int main(int argc, char** argv) {
  std::vector<std::string> files;
  std::set<std::string> skipped;
  warpcache::rtl::SimConfig config;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--skip" && more) {
      std::ifstream list(argv[++i]);
      for (std::string line; std::getline(list, line);) {
        if (!line.empty() && line[0] != '#') skipped.insert(line);
      }
    } else if (word == "--hold" && more) {
      config.hold_percent = static_cast<uint32_t>(std::atoi(argv[++i]));
    } else if (word == "--seed" && more) {
      config.seed = static_cast<uint32_t>(std::atoi(argv[++i]));
    } else {
      files.push_back(word);
    }
  }
  return warpcache::rtl::run(files, skipped, config);
}
