// SPDX-License-Identifier: Apache-2.0
//
// IP datagrams of test benches: their bytes from fields, and sums.
#pragma once

#include <cstdint>
#include <string>

#include "frames.h"
#include "testbench.h"

namespace warpcache::rtl {

inline std::string big(uint64_t number, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(number >> (8 * i));
  return out;
}
inline uint32_t byte_at(const std::string& bytes, size_t at) {
  return at < bytes.size() ? static_cast<uint8_t>(bytes[at]) : 0;
}
inline uint32_t big16(const std::string& bytes, size_t at) {
  return byte_at(bytes, at) << 8 | byte_at(bytes, at + 1);
}
// The number whose bytes, most significant first, are these; up to 16 of them.
inline Bits number_of(const std::string& bytes) {
  Bits number;
  const int size = static_cast<int>(bytes.size());
  for (int i = 0; i < size; ++i)
    number.place(8 * (size - 1 - i), 8, byte_at(bytes, static_cast<size_t>(i)));
  return number;
}
// The sum of RFC 1071, not inverted.
inline uint16_t folded(uint32_t sum) { return static_cast<uint16_t>(~checksum_of(sum)); }

struct IpDatagram {
  bool v6 = false;
  std::string source, destination;  // addresses
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  bool has_checksum = true;
  std::string options;  // of IPv4, whole words
  std::string payload;  // of UDP
  // IPv4's identification, flags, time to live are those of a reply.
  std::string bytes() const {
    const auto udp_size = static_cast<uint32_t>(8 + payload.size());
    std::string udp =
        big(source_port, 2) + big(destination_port, 2) + big(udp_size, 2) + big(0, 2) + payload;
    if (has_checksum) {
      const uint16_t sum =
          checksum_of(sum_of(source + destination, 0, 17 + udp_size) + sum_of(udp, 0));
      put16(udp, 6, sum == 0 ? 0xffff : sum);
    }
    if (v6) return big(0x60000000, 4) + big(udp_size, 2) + "\x11\x40" + source + destination + udp;
    std::string header = big(0x45 + options.size() / 4, 1) + '\0' +
                         big(20 + options.size() + udp_size, 2) + big(0, 2) + big(0x4000, 2) +
                         "\x40\x11" + big(0, 2) + source + destination + options;
    put16(header, 10, checksum_of(sum_of(header, 0)));
    return header + udp;
  }
};

}  // namespace warpcache::rtl
