// SPDX-License-Identifier: Apache-2.0
//
// Where a client comes from, for bounds that one client must not exhaust for all: a number that
// connections from one address share. Of IPv6 it is the network of 64 bits, whose addresses a host
// can take as it likes. 0: not known; Unix sockets share a number.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

namespace warpcache::io {

inline uint64_t source_of(const sockaddr& address) {
  constexpr uint64_t kIpv4 = uint64_t{1} << 32;  // no network of IPv6 begins with these 32 bits
  constexpr uint64_t kUnix = 1;
  constexpr uint64_t kLocalIpv6 = 2;  // ::1, and what else begins with 64 zeros
  if (address.sa_family == AF_UNIX) return kUnix;
  if (address.sa_family == AF_INET) {
    return kIpv4 | reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr;
  }
  if (address.sa_family != AF_INET6) return 0;
  const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&ipv6)) {
    uint32_t ipv4 = 0;
    std::memcpy(&ipv4, ipv6.s6_addr + 12, sizeof ipv4);
    return kIpv4 | ipv4;
  }
  uint64_t network = 0;
  for (uint32_t i = 0; i < 8; ++i) network = network << 8 | ipv6.s6_addr[i];
  return network == 0 ? kLocalIpv6 : network;
}

inline uint64_t source_of(const sockaddr_storage& address) {
  return source_of(reinterpret_cast<const sockaddr&>(address));
}

// Of a connected socket's peer.
inline uint64_t source_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return source_of(address);
}

}  // namespace warpcache::io
