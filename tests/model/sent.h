// SPDX-License-Identifier: Apache-2.0
//
// What matters of the messages that were sent, where answers differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace warpcache::model {

inline constexpr size_t kBinaryHeaderSize = 24;

// Of a binary request.
struct Header {
  uint8_t opcode = 0;
  size_t key_size = 0;
  size_t extras_size = 0;
  size_t body_size = 0;
};

// False: it does not begin with the header of a request.
bool read_header(const std::string& packet, Header& header);

// A line of the get family has a key that is too long.
bool gets_long_key(const std::string& bytes);

// What was sent in this script that can make a later answer differ.
struct History {
  bool flush = false;
  bool delayed_flush = false;
  bool count = false;  // incr, decr, ma
  bool long_value = false;
  bool refused_gat = false;  // for a key that is too long
  bool timed_count = false;  // ma with a time or id, which memcached loses where the number grows

  void add(const std::string& bytes);
};

}  // namespace warpcache::model
