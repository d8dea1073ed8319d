// SPDX-License-Identifier: Apache-2.0
//
// For tests and measurements: the control block of a program that serves one address.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "net/testing/packets.h"
#include "nic_cache/program.h"

namespace warpcache::nic_cache {

inline void set_port(nic_control& control, uint16_t port) {
  control.port = static_cast<uint16_t>(port << 8 | port >> 8);
}

// The server's only address is that which this frame is sent to. REQUIRES: it has all headers.
inline void listen_to(nic_control& control, const std::string& frame) {
  const size_t l3 = net::testing::l3_offset_of(frame);
  const size_t tags = std::min<size_t>((l3 - 14) / 4, 2);
  auto& address = control.addresses[0];
  address = {};
  if ((frame[l3] & 0xf0) == 0x60) {
    std::memcpy(address.words, &frame[l3 + 24], 16);
  } else {
    const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    std::memcpy(address.words, mapped, 12);
    std::memcpy(reinterpret_cast<uint8_t*>(address.words) + 12, &frame[l3 + 16], 4);
  }
  for (size_t i = 0; i < tags; ++i) {
    address.vlan |= (net::testing::get16(frame, 14 + 4 * i) & 0xfffu) << (12 * i);
  }
  std::memcpy(control.mac, frame.data(), 6);
  control.address_count = 1;
}

}  // namespace warpcache::nic_cache
