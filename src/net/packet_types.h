// SPDX-License-Identifier: Apache-2.0
//
// What the headers of an Ethernet frame say. See packet.h.
#pragma once

#include <cstdint>
#include <type_traits>

namespace warpcache::net {

enum class PacketVerdict : uint8_t {
  kRequest,      // an intact UDP datagram to the server's port
  kNotForUs,     // another protocol or port, or a sender that cannot be answered
  kTruncated,    // shorter than its headers say, or lengths that contradict each other
  kBadChecksum,  // the IPv4 header's or UDP's
  kFragment,     // a part of a larger IP datagram; fragments are never reassembled
  kUnsupported,  // more than two VLAN tags, an unknown IP version, IPv6 extension headers that are
                 // not skipped
  kExtensions    // IPv6 extension headers; only from functions that do not look at them
};
inline constexpr uint32_t kPacketVerdicts = 7;

// Where the parts of a frame lie. Offsets are in bytes from the start of the frame.
struct Packet {
  uint16_t l3_offset;       // IP header
  uint16_t l4_offset;       // UDP header
  uint16_t payload_offset;  // UDP payload, which starts with memcached's UDP header
  uint16_t payload_size;
  uint8_t ip_version;  // 4 or 6
  uint8_t vlan_count;  // 0 to 2
  bool has_udp_checksum;
  uint8_t reserved_;
};
static_assert(std::is_trivially_copyable_v<Packet> && sizeof(Packet) == 12);

}  // namespace warpcache::net
