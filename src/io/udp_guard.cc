// SPDX-License-Identifier: Apache-2.0
#include "io/udp_guard.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace warpcache::io {
namespace {

bool contains(const Network& network, const IpAddress& address) {
  const size_t whole = network.prefix_bits / 8;
  if (std::memcmp(network.address.data(), address.data(), whole) != 0) return false;
  const uint32_t rest = network.prefix_bits % 8;
  if (rest == 0) return true;
  const uint32_t mask = (0xff00u >> rest) & 0xffu;
  return ((network.address[whole] ^ address[whole]) & mask) == 0;
}

}  // namespace

IpAddress mapped_address(const sockaddr_storage& address) {
  IpAddress mapped{};
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, &address, sizeof in6);
    std::memcpy(mapped.data(), &in6.sin6_addr, 16);
  } else if (address.ss_family == AF_INET) {
    sockaddr_in in4{};
    std::memcpy(&in4, &address, sizeof in4);
    mapped[10] = mapped[11] = 0xff;
    std::memcpy(mapped.data() + 12, &in4.sin_addr, 4);
  }
  return mapped;
}

UdpGuard::UdpGuard(std::vector<Network> allowed, uint32_t factor)
    : allowed_(std::move(allowed)), factor_(factor) {}

bool UdpGuard::is_allowed(const IpAddress& address) const {
  return std::any_of(allowed_.begin(), allowed_.end(),
                     [&](const Network& network) { return contains(network, address); });
}

}  // namespace warpcache::io
