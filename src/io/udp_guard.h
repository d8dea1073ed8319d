// SPDX-License-Identifier: Apache-2.0
//
// Prevents attackers from using the server to amplify traffic to a forged source address. Outside
// the allowed networks a reply has at most `factor` times the bytes of its request. A longer reply
// is dropped; the client can use TCP.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <vector>

namespace warpcache::io {

// IPv4 addresses are stored as IPv4-mapped IPv6 (::ffff:a.b.c.d).
using IpAddress = std::array<uint8_t, 16>;

struct Network {
  IpAddress address{};
  uint8_t prefix_bits = 0;  // 0 to 128, of the mapped form
};

// The mapped form of an AF_INET or AF_INET6 address. Another family gives ::, which no network
// contains.
IpAddress mapped_address(const sockaddr_storage& address);

class UdpGuard {
 public:
  // Allows the networks in `allowed` and nothing else; loopback must be named too.
  UdpGuard(std::vector<Network> allowed, uint32_t factor);

  // Whether a reply of `reply_bytes` to a request of `request_bytes` may be sent. Both count whole
  // UDP payloads, memcached's 8-byte headers included.
  bool permits(const sockaddr_storage& source, uint64_t request_bytes, uint64_t reply_bytes) const {
    return permits_to_all(request_bytes, reply_bytes) || is_allowed(mapped_address(source));
  }
  bool permits(const IpAddress& source, uint64_t request_bytes, uint64_t reply_bytes) const {
    return permits_to_all(request_bytes, reply_bytes) || is_allowed(source);
  }
  // Whether such a reply may be sent whatever the source is.
  bool permits_to_all(uint64_t request_bytes, uint64_t reply_bytes) const {
    return reply_bytes <= request_bytes * factor_;
  }

  bool is_allowed(const IpAddress& address) const;

 private:
  std::vector<Network> allowed_;
  uint32_t factor_;
};

}  // namespace warpcache::io
