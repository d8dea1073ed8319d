// SPDX-License-Identifier: Apache-2.0
#include "client/ketama.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace warpcache::client {
namespace {

constexpr uint32_t kDigestsOfServer = 40;  // 160 points
constexpr uint32_t kPointsOfDigest = 4;

void md5_block(std::array<uint32_t, 4>& state, const uint8_t* block) {
  static constexpr int kShift[4][4] = {
      {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  uint32_t words[16];
  std::memcpy(words, block, sizeof words);
  auto [a, b, c, d] = state;
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t mixed = 0;
    uint32_t word = 0;
    switch (i / 16) {
      case 0:
        mixed = (b & c) | (~b & d);
        word = i;
        break;
      case 1:
        mixed = (d & b) | (~d & c);
        word = 5 * i + 1;
        break;
      case 2:
        mixed = b ^ c ^ d;
        word = 3 * i + 5;
        break;
      default:
        mixed = c ^ (b | ~d);
        word = 7 * i;
    }
    const auto sine = static_cast<uint32_t>(std::floor(std::abs(std::sin(i + 1.0)) * 4294967296.0));
    const uint32_t sum = a + mixed + sine + words[word % 16];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kShift[i / 16][i % 4]);
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

uint32_t point_of(const std::array<uint8_t, 16>& digest, uint32_t number) {
  uint32_t hash = 0;
  std::memcpy(&hash, digest.data() + 4 * size_t{number}, sizeof hash);
  return hash;
}

}  // namespace

std::array<uint8_t, 16> md5(std::string_view text) {
  std::array<uint32_t, 4> state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const auto* const data = reinterpret_cast<const uint8_t*>(text.data());
  const size_t whole = text.size() / 64 * 64;
  for (size_t at = 0; at < whole; at += 64) md5_block(state, data + at);
  uint8_t last[128] = {};
  const size_t rest = text.size() - whole;
  if (rest > 0) std::memcpy(last, data + whole, rest);
  last[rest] = 0x80;
  const size_t size = rest < 56 ? 64 : 128;
  const uint64_t bits = 8 * uint64_t{text.size()};
  std::memcpy(last + size - 8, &bits, sizeof bits);
  for (size_t at = 0; at < size; at += 64) md5_block(state, last + at);
  std::array<uint8_t, 16> digest;
  std::memcpy(digest.data(), state.data(), digest.size());
  return digest;
}

void Ketama::set_servers(const std::vector<std::string>& names) {
  points_.clear();
  servers_ = static_cast<uint32_t>(names.size());
  for (uint32_t server = 0; server < servers_; ++server) {
    for (uint32_t i = 0; i < kDigestsOfServer; ++i) {
      const std::array<uint8_t, 16> digest = md5(names[server] + "-" + std::to_string(i));
      for (uint32_t j = 0; j < kPointsOfDigest; ++j)
        points_.push_back({point_of(digest, j), server});
    }
  }
  std::stable_sort(points_.begin(), points_.end(),
                   [](const Point& a, const Point& b) { return a.hash < b.hash; });
}

uint32_t Ketama::server_of(std::string_view key) const {
  if (servers_ == 1) return 0;
  const uint32_t hash = point_of(md5(key), 0);
  const auto next = std::lower_bound(points_.begin(), points_.end(), hash,
                                     [](const Point& point, uint32_t h) { return point.hash < h; });
  return next == points_.end() ? points_.front().server : next->server;
}

}  // namespace warpcache::client
