// SPDX-License-Identifier: Apache-2.0
//
// The addresses that a network interface has at this moment, those of its VLAN interfaces included.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace warpcache::nic_cache {

// IPv4 addresses are stored as IPv4-mapped IPv6 (::ffff:a.b.c.d).
using IpAddress = std::array<uint8_t, 16>;

struct InterfaceAddress {
  IpAddress address{};
  uint32_t vlan = 0;  // the tag that frames to it have; 0: none
};

struct InterfaceAddresses {
  std::array<uint8_t, 6> mac{};
  std::vector<InterfaceAddress> addresses;
};

// Empty if there is no such interface.
InterfaceAddresses addresses_of(const std::string& interface);

}  // namespace warpcache::nic_cache
