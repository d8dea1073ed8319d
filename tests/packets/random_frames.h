// SPDX-License-Identifier: Apache-2.0
//
// Random Ethernet frames with commands of every protocol on a few keys.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "net/testing/packets.h"
#include "protocol/binary.h"
#include "protocol/testing/messages.h"
#include "protocol/testing/single_key.h"

namespace warpcache::packets {

class RandomFrames {
 public:
  explicit RandomFrames(uint64_t seed) : dice_(seed) {
    for (int i = 0; i < 48; ++i) keys_.push_back(std::to_string(i) + key_end());
  }

  const std::vector<std::string>& keys() const { return keys_; }
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(dice_() % bound); }
  bool one_in(uint32_t count) { return below(count) == 0; }

  // In one of three frames the command, its headers or both are damaged.
  std::string frame() {
    if (one_in(6)) {
      return protocol::testing::damaged_frame(dice_, [this](Dice& dice) {
        (void)dice;
        return command();
      });
    }
    std::string payload = command();
    if (one_in(6)) damage(payload);
    if (one_in(40)) payload += command();
    net::testing::FrameForm form;
    form.checksum = !one_in(3);
    form.ipv6 = one_in(12);
    if (one_in(12)) form.vlan_tags.push_back(0x8100);
    if (one_in(12) && !form.ipv6) form.ip_options = std::string(4, '\1');
    if (form.ipv6 && one_in(3)) form.extensions = extensions();
    if (one_in(6)) form.padding = std::string(below(8), 'p');
    return net::testing::frame_of(protocol::testing::kHeader + payload, form);
  }

  static std::string get_frame(const std::string& key) {
    return net::testing::frame_of(protocol::testing::kHeader + "get " + key + "\r\n");
  }

 private:
  using Dice = std::mt19937_64;

  template <size_t kSize>
  std::string one_of(const char* const (&texts)[kSize]) {
    return texts[dice_() % kSize];
  }
  std::string key_end() {
    std::string end(one_in(6) ? below(240) : below(20), 'k');
    for (char& byte : end) byte = static_cast<char>('!' + below(94));
    return end;
  }
  std::string value() {
    std::string bytes(one_in(6) ? below(1200) : below(one_in(2) ? 100 : 12), 'v');
    const char first = one_in(4) ? '\n' : 'a';
    for (char& byte : bytes) byte = static_cast<char>(first + static_cast<char>(below(20)));
    return one_in(4) ? std::to_string(below(100000)) : bytes;  // numbers, for incr
  }
  std::string key() { return keys_[below(static_cast<uint32_t>(keys_.size()))]; }
  std::string time() { return one_of({"0", "0", "0", "1", "3", "100", "-1"}); }
  std::string flags() { return one_in(2) ? "0" : std::to_string(dice_() % 4294967296); }
  std::string noreply() { return one_in(8) ? " noreply" : ""; }

  // Of IPv6, some of them more or longer than what is answered.
  std::vector<net::testing::Ipv6Extension> extensions() {
    std::vector<net::testing::Ipv6Extension> all;
    for (uint32_t count = 1 + below(5); count > 0; --count) {
      const uint8_t types[] = {0, 43, 60};
      const uint8_t type = all.empty() ? types[below(3)] : types[1 + below(2)];
      all.push_back(net::testing::extension_of(type, static_cast<uint8_t>(1 + below(3))));
      if (one_in(8)) damage(all.back().rest);
    }
    return all;
  }

  void damage(std::string& bytes) {
    const char kBytes[] = {'\0', ' ', '\r', '\n', '0', '9', '-', 'k', '\x80', '\xff'};
    for (uint32_t changes = 1 + below(2); changes > 0; --changes) {
      bytes[below(static_cast<uint32_t>(bytes.size()))] = kBytes[below(sizeof kBytes)];
    }
  }

  std::string command() {
    switch (below(8)) {
      case 0:
      case 1:
        return "get " + key() + "\r\n";
      case 2:
      case 3: {
        const std::string bytes = value();
        return "set " + key() + " " + flags() + " " + (one_in(3) ? time() : "0") + " " +
               std::to_string(bytes.size()) + noreply() + "\r\n" + bytes + "\r\n";
      }
      case 4:
        return text();
      case 5:
        return meta();
      case 6:
        return binary();
      default:
        return one_of({"version\r\n", "mn\r\n", "get\r\n", "nonsense\r\n", "stats\r\n", "quit\r\n",
                       "get a b\r\n", "verbosity 1\r\n"});
    }
  }

  std::string multiget() {
    std::string line = one_in(2) ? "get" : "gets";
    for (uint32_t count = one_in(10) ? 140 : 1 + below(one_in(2) ? 6 : 40); count > 0; --count) {
      const std::string next = std::string(one_in(8) ? 1 + below(20) : 1, ' ') + key();
      if (line.size() + next.size() < 1300) line += next;
    }
    return line + (one_in(8) ? " " : "") + (one_in(8) ? "\n" : "\r\n");
  }

  std::string text() {
    switch (below(8)) {
      case 0:
        return "gets " + key() + "\r\n";
      case 1:
        return one_of({"gat ", "gats "}) + time() + " " + key() + "\r\n";
      case 2:
        return one_of({"incr ", "decr "}) + key() + " " + std::to_string(below(1000)) + noreply() +
               "\r\n";
      case 3:
        return "delete " + key() + noreply() + "\r\n";
      case 4:
        return "touch " + key() + " " + time() + noreply() + "\r\n";
      case 5:
      case 6:
        return multiget();
      default: {
        const std::string bytes = value();
        const std::string name = one_of({"add ", "replace ", "append ", "prepend ", "cas "});
        return name + key() + " " + flags() + " " + time() + " " + std::to_string(bytes.size()) +
               (name == "cas " ? " 0" : "") + noreply() + "\r\n" + bytes + "\r\n";
      }
    }
  }

  template <size_t kSize>
  std::string some_of(const char* const (&words)[kSize]) {
    std::string all;
    for (const char* const word : words) {
      if (one_in(3)) all += std::string(" ") + word;
    }
    return all;
  }

  std::string meta() {
    switch (below(4)) {
      case 0:
        return "mg " + key() +
               some_of({"v", "f", "s", "t", "h", "l", "k", "q", "O77", "T30", "N20", "R40", "u"}) +
               "\r\n";
      case 1: {
        const std::string bytes = value();
        return "ms " + key() + " " + std::to_string(bytes.size()) +
               some_of({"F5", "T9", "k", "q", "Oab", "ME", "MA", "MR", "N7", "I"}) + "\r\n" +
               bytes + "\r\n";
      }
      case 2:
        return "md " + key() + some_of({"q", "k", "T30", "I", "x"}) + "\r\n";
      default:
        return "ma " + key() + some_of({"v", "t", "q", "k", "N0", "J13", "D7", "MD", "T20"}) +
               "\r\n";
    }
  }

  std::string binary() {
    using namespace protocol;
    using testing::big_endian;
    using testing::binary_request;
    switch (below(6)) {
      case 0:
        return binary_request(one_in(2) ? kOpGet : kOpGetKQ, "", key(), "");
      case 1:
        return binary_request(one_in(2) ? kOpGat : kOpTouch, big_endian(below(100), 4), key(), "");
      case 2:
        return binary_request(one_in(2) ? kOpDelete : kOpDeleteQ, "", key(), "");
      case 3:
        return binary_request(one_in(2) ? kOpIncrement : kOpDecrement,
                              big_endian(below(99), 8) + big_endian(below(99), 8) +
                                  big_endian(one_in(2) ? kExptimeNoVivify : 0, 4),
                              key(), "");
      case 4:
        return binary_request(one_in(2) ? kOpAppend : kOpPrepend, "", key(), value());
      default: {
        const BinaryOpcode codes[] = {kOpSet, kOpSetQ, kOpAdd, kOpReplace};
        return binary_request(codes[below(4)], big_endian(below(9), 4) + big_endian(below(9), 4),
                              key(), value());
      }
    }
  }

  Dice dice_;
  std::vector<std::string> keys_;
};

}  // namespace warpcache::packets
