// SPDX-License-Identifier: Apache-2.0
//
// UDP headers (RFC 768) and their checksum over the IP addresses, the header and the payload. IPv4
// allows datagrams without a checksum, IPv6 does not (RFC 8200, 8.1). memcached's UDP header, the
// start of the payload, is in protocol/framing/udp_frame.h.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/hd.h"
#include "base/mem.h"
#include "net/checksum.h"
#include "net/ip.h"
#include "net/packet_types.h"

namespace warpcache::net {

inline constexpr uint32_t kUdpProtocolHeaderSize = 8;
inline constexpr uint32_t kUdpDestinationOffset = 2;
inline constexpr uint32_t kUdpLengthOffset = 4;
inline constexpr uint32_t kUdpChecksumOffset = 6;

// The sum over the pseudo header: addresses, protocol and length. REQUIRES: `frame` holds the IP
// addresses of a header at `l3_offset`.
WC_HD inline uint64_t udp_pseudo_header_sum(const uint8_t* frame, uint32_t l3_offset,
                                            uint8_t ip_version, uint16_t udp_size) {
  const uint8_t* ip = frame + l3_offset;
  const uint64_t addresses = ip_version == 4
                                 ? checksum_add(0, ip + kIpv4SourceOffset, 2 * kIpv4AddressSize)
                                 : checksum_add(0, ip + kIpv6SourceOffset, 2 * kIpv6AddressSize);
  return checksum_add16(checksum_add16(addresses, kIpProtocolUdp), udp_size);
}

// Fills the fields of `packet` about the payload. REQUIRES: the UDP header at packet.l4_offset is
// complete, and its length is valid.
WC_HD inline void place_udp_payload(Bytes frame, Packet& packet) {
  const uint8_t* header = frame.data + packet.l4_offset;
  packet.has_udp_checksum = load_as<uint16_t>(header + kUdpChecksumOffset) != 0;
  packet.payload_offset = static_cast<uint16_t>(packet.l4_offset + kUdpProtocolHeaderSize);
  packet.payload_size =
      static_cast<uint16_t>(load_big16(header + kUdpLengthOffset) - kUdpProtocolHeaderSize);
}

// Reads the UDP header at packet.l4_offset. IP carries `size` bytes; UDP's own length may be less,
// and the bytes after it do not belong to the datagram. Fills the remaining fields of `packet`. A
// datagram with source port 0 cannot be answered and is kNotForUs. Leaves the checksum, where there
// is one, to udp_is_intact().
WC_HD inline PacketVerdict parse_udp_header_fields(Bytes frame, uint32_t size, uint16_t udp_port,
                                                   Packet& packet) {
  const uint8_t* header = frame.data + packet.l4_offset;
  if (size < kUdpProtocolHeaderSize) return PacketVerdict::kTruncated;
  if (load_big16(header + kUdpDestinationOffset) != udp_port || load_big16(header) == 0) {
    return PacketVerdict::kNotForUs;
  }
  const uint16_t udp_size = load_big16(header + kUdpLengthOffset);
  if (udp_size < kUdpProtocolHeaderSize || udp_size > size) return PacketVerdict::kTruncated;
  place_udp_payload(frame, packet);
  if (!packet.has_udp_checksum && packet.ip_version == 6) return PacketVerdict::kBadChecksum;
  return PacketVerdict::kRequest;
}

// Whether the datagram agrees with its checksum. `sum`: checksum_add() of UDP header and payload.
// REQUIRES: packet.has_udp_checksum.
WC_HD inline bool udp_is_intact(Bytes frame, const Packet& packet, uint64_t sum) {
  const auto udp_size = static_cast<uint16_t>(kUdpProtocolHeaderSize + packet.payload_size);
  return checksum_fold(sum + udp_pseudo_header_sum(frame.data, packet.l3_offset, packet.ip_version,
                                                   udp_size)) == 0xffff;
}

// parse_udp_header_fields() and udp_is_intact().
WC_HD inline PacketVerdict parse_udp(Bytes frame, uint32_t size, uint16_t udp_port,
                                     Packet& packet) {
  const PacketVerdict verdict = parse_udp_header_fields(frame, size, udp_port, packet);
  if (verdict != PacketVerdict::kRequest || !packet.has_udp_checksum) return verdict;
  const uint64_t sum = checksum_add(0, frame.data + packet.l4_offset,
                                    kUdpProtocolHeaderSize + size_t{packet.payload_size});
  return udp_is_intact(frame, packet, sum) ? PacketVerdict::kRequest : PacketVerdict::kBadChecksum;
}

// Writes the header of the reply to `request`: ports swapped, `payload_size` bytes, no checksum.
// REQUIRES: `out` has 8 bytes that do not overlap `request`; payload_size <= 65527.
WC_HD inline void compose_udp_reply(const uint8_t* request, uint32_t payload_size, uint8_t* out) {
  store_as(out, load_as<uint16_t>(request + kUdpDestinationOffset));
  store_as(out + kUdpDestinationOffset, load_as<uint16_t>(request));
  store_big16(out + kUdpLengthOffset, static_cast<uint16_t>(kUdpProtocolHeaderSize + payload_size));
  store_big16(out + kUdpChecksumOffset, uint16_t{0});
}

// The checksum field for a sum over pseudo header, header and payload. A checksum of 0 is written
// as 0xffff, because 0 means "no checksum".
WC_HD inline uint16_t udp_checksum(uint64_t sum) {
  const uint16_t checksum = static_cast<uint16_t>(~checksum_fold(sum));
  return checksum != 0 ? checksum : uint16_t{0xffff};
}

}  // namespace warpcache::net
