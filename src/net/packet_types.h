// SPDX-License-Identifier: Apache-2.0
//
// What is known of an Ethernet frame once its headers have been read. See packet.h.
#pragma once

#include <cstdint>
#include <type_traits>

namespace warpcache::net {

enum class PacketVerdict : uint8_t {
  kRequest,      // a UDP datagram for us, intact
  kNotForUs,     // another protocol or port, or nobody who could be answered
  kTruncated,    // shorter than its headers say, or lengths that contradict each other
  kBadChecksum,  // of the IPv4 header or of UDP
  kFragment,     // of a larger IP datagram: never put together
  kUnsupported,  // more than two VLAN tags, IPv6 extension headers, an unknown IP version
};
inline constexpr uint32_t kPacketVerdicts = 6;

// Where the parts of a frame lie. All offsets are in bytes from the frame's first.
struct Packet {
  uint16_t l3_offset;       // IP header
  uint16_t l4_offset;       // UDP header
  uint16_t payload_offset;  // what UDP carries: memcached's UDP header comes first in it
  uint16_t payload_size;
  uint8_t ip_version;  // 4 or 6
  uint8_t vlan_count;  // 0 to 2
  bool has_udp_checksum;
  uint8_t reserved_;
};
static_assert(std::is_trivially_copyable_v<Packet> && sizeof(Packet) == 12);

}  // namespace warpcache::net
