// SPDX-License-Identifier: Apache-2.0
//
// Distribution of keys over servers as libmemcached's MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED does it,
// with equal weights: other clients with that setting find the same server for a key.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warpcache::client {

std::array<uint8_t, 16> md5(std::string_view text);

class Ketama {
 public:
  // Names are HOST:PORT, or HOST for port 11211, as libmemcached writes them.
  void set_servers(const std::vector<std::string>& names);
  // REQUIRES: there are servers.
  uint32_t server_of(std::string_view key) const;

 private:
  struct Point {
    uint32_t hash;
    uint32_t server;
  };
  std::vector<Point> points_;  // by hash
  uint32_t servers_ = 0;
};

}  // namespace warpcache::client
