// SPDX-License-Identifier: Apache-2.0
//
// The client of a connection, as watchers are shown it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "engine/watch.h"

namespace warpcache::worker {

inline engine::PeerAddress peer_of(const sockaddr_storage& address) {
  engine::PeerAddress peer;
  if (address.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    peer.kind = engine::PeerAddress::Kind::kIpv4;
    peer.port = ntohs(ipv4.sin_port);
    std::memcpy(peer.bytes, &ipv4.sin_addr, sizeof ipv4.sin_addr);
  } else if (address.ss_family == AF_INET6) {
    const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
    peer.kind = engine::PeerAddress::Kind::kIpv6;
    peer.port = ntohs(ipv6.sin6_port);
    std::memcpy(peer.bytes, &ipv6.sin6_addr, sizeof ipv6.sin6_addr);
  } else {
    peer.kind = engine::PeerAddress::Kind::kUnix;
  }
  return peer;
}

inline engine::PeerAddress peer_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return peer_of(address);
}

}  // namespace warpcache::worker
