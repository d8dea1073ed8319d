// SPDX-License-Identifier: Apache-2.0
//
// Keeps the server from being used to multiply traffic against a forged source address: outside the
// allowed networks a reply has at most `factor` times the bytes of its request. Anything longer is
// not sent at all; the client has TCP for it.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <vector>

namespace warpcache::io {

// An IPv4 address is held as IPv4-mapped IPv6 (::ffff:a.b.c.d).
using IpAddress = std::array<uint8_t, 16>;

struct Network {
  IpAddress address{};
  uint8_t prefix_bits = 0;  // 0 to 128, counted in the mapped form
};

// REQUIRES: an AF_INET or AF_INET6 address. All others give ::, which nothing allows.
IpAddress mapped_address(const sockaddr_storage& address);

class UdpGuard {
 public:
  // Nothing is allowed but what `allowed` names, loopback neither.
  UdpGuard(std::vector<Network> allowed, uint32_t factor);

  // May `reply_bytes` go out for `request_bytes`? Both count whole datagram payloads, with the
  // 8-byte headers.
  bool permits(const sockaddr_storage& source, uint64_t request_bytes, uint64_t reply_bytes) const {
    return reply_bytes <= request_bytes * factor_ || is_allowed(source);
  }

  bool is_allowed(const sockaddr_storage& source) const;

 private:
  std::vector<Network> allowed_;
  uint32_t factor_;
};

}  // namespace warpcache::io
