// SPDX-License-Identifier: Apache-2.0
//
// rtl_evict [--keys N] [--hold PERCENT]: stores more keys than the index has ways (three times as
// many), twice, and reads all of them. A key is missed or has the value that was stored last, never
// another key's; and the index keeps nearly as many keys as it has ways. Then replies around the
// longest one, and keys and values around the longest ones.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "frames.h"
#include "shape.h"
#include "sim.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kBurst = 64;

std::string key_of(uint32_t number) {
  return ("key-" + std::to_string(number * 7919u) + std::string(number % 20, 'x'))
      .substr(0, kKeyMax);
}
std::string value_of(uint32_t number, uint32_t round) {
  const std::string value =
      std::to_string(round) + ":" + key_of(number) + std::string(number % 37, 'v');
  return value.substr(0, kValueMax);
}

// Without padding.
std::string payload_of(const std::string& reply) {
  const auto udp_size =
      static_cast<size_t>(static_cast<uint8_t>(reply[38]) << 8 | static_cast<uint8_t>(reply[39]));
  return reply.substr(50, udp_size - 16);
}

// A reply of as many datagrams as the core can send comes whole; a longer one is dropped, and those
// after it come.
bool long_replies(const SimConfig& config) {
  constexpr uint32_t kDatagramsMax = 8;
  constexpr size_t kPayloadMax = 1392;
  Sim sim(config);
  const std::string value(std::min(1000U, kValueMax), 'v');
  const std::string size = std::to_string(value.size());
  const std::string item = "VALUE k 0 " + size + "\r\n" + value + "\r\n";
  sim.send(request_frame("set k 0 0 " + size + "\r\n" + value + "\r\n"));
  if (!sim.run_until_idle()) return false;
  sim.take();
  const auto keys_max = static_cast<uint32_t>(kDatagramsMax * kPayloadMax / item.size());
  for (uint32_t keys = keys_max < 30 ? 1 : keys_max - 30; keys < keys_max + 30; ++keys) {
    std::string request = "get";
    std::string want;
    for (uint32_t i = 0; i < keys; ++i) {
      request += " k";
      want += item;
    }
    want += "END\r\n";
    const uint32_t dropped = sim.counter(kRepliesDropped);
    sim.send(request_frame(request + "\r\n"));
    sim.send(request_frame("get none\r\n", 2));
    if (!sim.run_until_idle()) return false;
    std::vector<std::string> replies = sim.take();
    if (replies.empty() || replies.back().substr(50, 5) != "END\r\n") return false;
    replies.pop_back();
    const bool fits = want.size() <= kDatagramsMax * kPayloadMax;
    std::string got;
    for (const std::string& reply : replies) got += payload_of(reply);
    if (got != (fits ? want : "") || sim.counter(kRepliesDropped) != dropped + (fits ? 0 : 1)) {
      std::printf("a reply with %u values of %s bytes is wrong\n", keys, size.c_str());
      return false;
    }
  }
  return true;
}

// The longest key with the longest value is stored whole; of what is longer nothing is.
bool limits(const SimConfig& config) {
  Sim sim(config);
  const std::string key(kKeyMax, 'k');
  const std::string value(kValueMax, 'v');
  const auto set = [](const std::string& name, const std::string& bytes) {
    return "set " + name + " 4294967295 0 " + std::to_string(bytes.size()) + "\r\n" + bytes +
           "\r\n";
  };
  const std::string hit =
      "VALUE " + key + " 4294967295 " + std::to_string(kValueMax) + "\r\n" + value + "\r\nEND\r\n";
  const auto binary = [](uint32_t key_size) {
    const char header[] = {'\x80', 0, 0, static_cast<char>(key_size), 0, 0, 0, 0,
                           0,      0, 0, static_cast<char>(key_size)};
    return std::string(header, sizeof(header)) + std::string(12, '\0') + std::string(key_size, 'k');
  };
  const std::string too_large = "SERVER_ERROR object too large for cache\r\n";
  const std::string format = "CLIENT_ERROR bad command line format\r\n";
  const std::pair<std::string, std::string> dialogue[] = {
      {set(key, value), "STORED\r\n"},
      {"get " + key + "\r\n", hit},
      {"append " + key + " 0 0 1\r\na\r\n", "NOT_STORED\r\n"},
      {set(key + "k", "v"), format},
      {"get " + key + "k\r\n", format},
      {"delete " + key + "k\r\n", format},
      {set("k", value + "v"), too_large},
      {"get k\r\n", "END\r\n"},
      {"get " + key + "\r\n", hit},
      {set("k", value.substr(1)), "STORED\r\n"},
      {"prepend k 0 0 1\r\nv\r\n", "STORED\r\n"},
      {"get k\r\n",
       "VALUE k 4294967295 " + std::to_string(kValueMax) + "\r\n" + value + "\r\nEND\r\n"},
  };
  for (const auto& [request, want] : dialogue) {
    sim.send(request_frame(request));
    if (!sim.run_until_idle()) return false;
    std::string got;
    for (const std::string& reply : sim.take()) got += payload_of(reply);
    if (got != want) {
      std::printf("around the limits: %.40s is answered %.60s\n", request.c_str(), got.c_str());
      return false;
    }
  }
  // Status 4: invalid arguments.
  sim.send(request_frame(binary(kKeyMax)));
  if (!sim.run_until_idle()) return false;
  std::string got;
  for (const std::string& reply : sim.take()) got += payload_of(reply);
  sim.send(request_frame(binary(kKeyMax + 1)));
  if (!sim.run_until_idle()) return false;
  const std::vector<std::string> refused = sim.take();
  if (got.size() != 28 + value.size() || got.substr(28) != value || refused.size() != 1 ||
      payload_of(refused[0])[7] != 4) {
    std::printf("around the limits: a binary get of the longest key, or of a longer one\n");
    return false;
  }
  return true;
}

bool run(uint32_t keys, const SimConfig& config) {
  Sim sim(config);
  for (uint32_t round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < keys; ++i) {
      const std::string value = value_of(i, round);
      sim.send(request_frame("set " + key_of(i) + " 0 0 " + std::to_string(value.size()) + "\r\n" +
                             value + "\r\n"));
      if (i % kBurst == 0 && !sim.run_until_idle()) return false;
    }
  }
  if (!sim.run_until_idle()) return false;
  for (const std::string& reply : sim.take()) {
    if (reply.substr(50, 8) != "STORED\r\n") return false;
  }
  uint32_t hits = 0;
  uint32_t late_hits = 0;  // of the keys that were stored last, as many as a quarter of the ways
  for (uint32_t i = 0; i < keys; i += kBurst) {
    const uint32_t end = std::min(i + kBurst, keys);
    for (uint32_t k = i; k < end; ++k) {
      sim.send(request_frame("get " + key_of(k) + "\r\n", static_cast<uint16_t>(k - i)));
    }
    if (!sim.run_until_idle()) return false;
    const std::vector<std::string> replies = sim.take();
    if (replies.size() != end - i) return false;
    for (uint32_t k = i; k < end; ++k) {
      const std::string& reply = replies[k - i];
      const std::string payload = payload_of(reply);
      if (payload == "END\r\n") continue;
      const std::string value = value_of(k, 1);
      const std::string hit = "VALUE " + key_of(k) + " 0 " + std::to_string(value.size()) + "\r\n" +
                              value + "\r\nEND\r\n";
      if (payload != hit) {
        std::printf("%s has another value\n", key_of(k).c_str());
        return false;
      }
      ++hits;
      if (k >= keys - kItems / 4) ++late_hits;
    }
  }
  std::printf("%u keys, %u hits of at most %u, %u of the last %u; %u tags met another key\n", keys,
              hits, kItems, late_hits, kItems / 4, sim.counter(kOtherKey));
  return hits <= kItems && hits > kItems * 9 / 10 && late_hits > kItems / 4 * 9 / 10;
}

}  // namespace
}  // namespace warpcache::rtl

int main(int argc, char** argv) {
  uint32_t keys = 3 * warpcache::rtl::kItems;
  warpcache::rtl::SimConfig config;
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--keys") keys = static_cast<uint32_t>(std::atoi(argv[i + 1]));
    if (word == "--hold") config.hold_percent = static_cast<uint32_t>(std::atoi(argv[i + 1]));
  }
  if (warpcache::rtl::run(keys, config) && warpcache::rtl::long_replies(config) &&
      warpcache::rtl::limits(config)) {
    return 0;
  }
  std::printf("failed\n");
  return 1;
}
