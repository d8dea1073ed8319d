// SPDX-License-Identifier: Apache-2.0
//
// Frames of clients, for tests and measurements.
#pragma once

#include <cstdint>
#include <string>

namespace warpcache::rtl {

inline uint32_t sum_of(const std::string& bytes, size_t from, uint32_t sum = 0) {
  for (size_t i = from; i < bytes.size(); i += 2) {
    sum += static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << 8;
    if (i + 1 < bytes.size()) sum += static_cast<uint8_t>(bytes[i + 1]);
  }
  return sum;
}

inline uint16_t checksum_of(uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

inline void put16(std::string& out, size_t at, uint32_t value) {
  out[at] = static_cast<char>(value >> 8);
  out[at + 1] = static_cast<char>(value);
}

// An IPv4 frame with `payload` after memcached's header.
inline std::string request_frame(const std::string& payload, uint16_t request_id = 1,
                                 uint16_t udp_port = 11211) {
  static const char kHeaders[] =
      "\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0"
      "\x45\0\0\0\x12\x34\x40\0\x40\x11\0\0\xc0\0\x02\x0a\xc6\x33\x64\x0b"
      "\x9c\x40\0\0\0\0\0\0"
      "\0\0\0\0\0\x01\0\0";
  std::string frame(kHeaders, 50);
  frame += payload;
  const auto udp_size = static_cast<uint32_t>(16 + payload.size());
  put16(frame, 16, 20 + udp_size);
  put16(frame, 24, checksum_of(sum_of(frame.substr(14, 20), 0)));
  put16(frame, 36, udp_port);
  put16(frame, 38, udp_size);
  put16(frame, 42, request_id);
  const uint32_t pseudo = sum_of(frame.substr(26, 8), 0) + 17 + udp_size;
  const uint16_t checksum = checksum_of(sum_of(frame, 34, pseudo));
  put16(frame, 40, checksum == 0 ? 0xffff : checksum);
  return frame;
}

}  // namespace warpcache::rtl
