// SPDX-License-Identifier: Apache-2.0
//
// The cases of this folder (README.md), and a server in memory that they are played on.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/testing/rig.h"
#include "engine/testing/store_admin.h"
#include "io/frames/testing/memory_port.h"
#include "worker/frame_worker.h"
#include "worker/testing/fake_transport.h"
#include "worker/worker.h"

namespace warpcache::packets {

using Json = nlohmann::json;

// Where the cases are.
inline std::string folder() {
  const char* const elsewhere = std::getenv("PACKETS_FOLDER");
  return elsewhere != nullptr ? elsewhere : PACKETS_FOLDER;
}

inline std::vector<std::string> topics() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder() + "/cases")) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Characters of the file up to U+00FF are bytes.
inline std::string bytes_of_text(const std::string& utf8) {
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

inline std::vector<uint8_t> bytes_of_hex(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

inline std::string hex_of(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string hex;
  for (const char byte : bytes) {
    hex += kDigits[static_cast<uint8_t>(byte) >> 4];
    hex += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return hex;
}

// `xx` stands for any byte.
inline bool matches(const std::string& want, const std::string& got) {
  return want.size() == got.size() && std::equal(want.begin(), want.end(), got.begin(),
                                                 [](char w, char g) { return w == 'x' || w == g; });
}

// A store with an engine for frames, and one for the commands of set-ups.
class Server {
 public:
  Server(engine::Rig& rig, uint16_t udp_port)
      : rig_(rig),
        admin_(rig.store()),
        loop_(config_of(udp_port), io::UdpGuard({{{}, 0}}, 1), port_, rig.make_engine(admin_)),
        setup_loop_({}, setup_, rig.make_engine(admin_)),
        stream_(setup_.open()) {
    EXPECT_EQ(loop_.open(), "");
  }
  ~Server() {
    setup_.close(stream_);
    rig_.rest();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Runs commands of the text protocol, not as frames; returns their replies.
  std::string set_up(const std::string& commands) {
    constexpr int kIterationsMax = 1000;
    stream_.input += commands;
    for (int i = 0; i < kIterationsMax && !setup_.idle(); ++i) (void)setup_loop_.run_once(0);
    return std::exchange(stream_.output, {});
  }
  void add(const std::string& frame) { port_.add(frame); }
  // Runs the added frames; returns the replies since the last call.
  std::vector<std::string> run() {
    loop_.run();
    std::vector<std::string> replies;
    for (io::MemoryPort::Frame& frame : port_.take_sent()) {
      replies.push_back(std::move(frame.bytes));
    }
    return replies;
  }
  void advance(uint32_t seconds) { rig_.store().set_clock(rig_.store().clock().now + seconds); }
  // Frames so far with a verdict of README.md.
  uint64_t count_of(const std::string& verdict) const {
    static const std::map<std::string, io::Counter io::FrameCounters::*> kCounters = {
        {"request", &io::FrameCounters::requests},
        {"not_for_us", &io::FrameCounters::not_for_us},
        {"truncated", &io::FrameCounters::truncated},
        {"bad_checksum", &io::FrameCounters::bad_checksum},
        {"fragment", &io::FrameCounters::fragments},
        {"unsupported", &io::FrameCounters::unsupported},
        {"malformed", &io::FrameCounters::malformed}};
    return (port_.counters().*kCounters.at(verdict)).get();
  }

 private:
  static worker::FrameWorkerConfig config_of(uint16_t udp_port) {
    worker::FrameWorkerConfig config;
    config.packets.udp_port = udp_port;
    return config;
  }

  engine::Rig& rig_;
  engine::StoreAdmin admin_;
  io::MemoryPort port_;
  worker::FrameWorker loop_;
  worker::FakeTransport setup_;
  worker::Worker setup_loop_;
  worker::FakeTransport::Stream& stream_;
};

inline void expect_replies(const Json& want, const std::vector<std::string>& frames,
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

inline void add(Server& server, const Json& step) {
  const std::vector<uint8_t> frame = bytes_of_hex(step.at("in").get<std::string>());
  server.add({frame.begin(), frame.end()});
}

}  // namespace warpcache::packets
