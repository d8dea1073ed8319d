// SPDX-License-Identifier: Apache-2.0
//
// The files of tests/packets/cases: frames in hexadecimal, and commands as text.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace warpcache::rtl {

using Json = nlohmann::json;

// The bytes of a JSON text, which has a character below 256 for each.
inline std::string bytes_of_text(const std::string& utf8) {
  std::string bytes;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto lead = static_cast<uint8_t>(utf8[i]);
    bytes += lead < 0x80
                 ? utf8[i]
                 : static_cast<char>((lead & 3) << 6 | (static_cast<uint8_t>(utf8[++i]) & 0x3f));
  }
  return bytes;
}

inline std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

inline std::string hex_of(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", static_cast<uint8_t>(byte));
    hex += two;
  }
  return hex;
}

// Whether a frame, in hexadecimal, is the one that a case wants; 'x' stands for any digit.
inline bool matches(const std::string& want, const std::string& got) {
  if (want.size() != got.size()) return false;
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] != 'x' && want[i] != got[i]) return false;
  }
  return true;
}

// All frames that the cases send, but empty ones.
inline std::vector<std::string> frames_of(const std::vector<std::string>& files) {
  std::vector<std::string> frames;
  for (const std::string& file : files) {
    const Json topic = Json::parse(std::ifstream(file));
    for (const Json& test : topic.at("cases")) {
      for (const Json& step : test.at("steps")) {
        if (!step.contains("in")) continue;
        const std::string frame = bytes_of_hex(step.at("in").get<std::string>());
        if (!frame.empty()) frames.push_back(frame);
      }
    }
  }
  return frames;
}

}  // namespace warpcache::rtl
