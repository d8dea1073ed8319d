// SPDX-License-Identifier: Apache-2.0
//
// IPv4 (RFC 791) and IPv6 (RFC 8200) headers of UDP datagrams. IPv4 options are skipped; for IPv6's
// extension headers see ipv6_extensions.h.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/hd.h"
#include "base/mem.h"
#include "net/checksum.h"
#include "net/packet_types.h"

namespace warpcache::net {

inline constexpr uint32_t kIpv4HeaderSize = 20;  // without options
inline constexpr uint32_t kIpv4LengthOffset = 2;
inline constexpr uint32_t kIpv4FragmentOffset = 6;
inline constexpr uint32_t kIpv4ProtocolOffset = 9;
inline constexpr uint32_t kIpv4ChecksumOffset = 10;
inline constexpr uint32_t kIpv4SourceOffset = 12;
inline constexpr uint32_t kIpv4AddressSize = 4;
inline constexpr uint16_t kIpv4DontFragment = 0x4000;
inline constexpr uint16_t kIpv4FragmentMask = 0x3fff;  // flag "more fragments", fragment offset

inline constexpr uint32_t kIpv6HeaderSize = 40;
inline constexpr uint32_t kIpv6LengthOffset = 4;
inline constexpr uint32_t kIpv6NextHeaderOffset = 6;
inline constexpr uint32_t kIpv6HopLimitOffset = 7;
inline constexpr uint32_t kIpv6SourceOffset = 8;
inline constexpr uint32_t kIpv6AddressSize = 16;

inline constexpr uint8_t kIpProtocolUdp = 17;
inline constexpr uint8_t kIpv6HopByHop = 0;
inline constexpr uint8_t kIpv6Routing = 43;
inline constexpr uint8_t kIpv6Fragment = 44;
inline constexpr uint8_t kIpv6DestinationOptions = 60;

inline constexpr uint8_t kReplyHopLimit = 64;  // also the time to live of IPv4

WC_HD constexpr uint32_t ip_reply_header_size(uint8_t ip_version) {
  return ip_version == 4 ? kIpv4HeaderSize : kIpv6HeaderSize;
}

// Whether the address is neither in 0/8 ("this network") nor in 224/3 (multicast, reserved,
// broadcast).
WC_HD inline bool is_ipv4_host(const uint8_t* address) {
  return address[0] != 0 && address[0] < 224;
}

// Whether the address is neither unspecified (::) nor multicast.
WC_HD inline bool is_ipv6_host(const uint8_t* address) {
  return address[0] != 0xff && (load_as<uint64_t>(address) | load_as<uint64_t>(address + 8)) != 0;
}

// Reads the IPv4 header at packet.l3_offset. Fills ip_version, l4_offset and `payload_size`, the
// bytes that IP carries; the frame may have padding after them. kRequest: IP carries UDP.
WC_HD inline PacketVerdict parse_ipv4(Bytes frame, Packet& packet, uint32_t& payload_size) {
  const uint8_t* header = frame.data + packet.l3_offset;
  const size_t left = frame.size - packet.l3_offset;
  if (left < kIpv4HeaderSize) return PacketVerdict::kTruncated;
  if (header[0] >> 4 != 4) return PacketVerdict::kUnsupported;
  const uint32_t header_size = (header[0] & 0x0fu) * 4;
  const uint32_t total_size = load_big16(header + kIpv4LengthOffset);
  if (header_size < kIpv4HeaderSize || header_size > total_size || total_size > left) {
    return PacketVerdict::kTruncated;
  }
  if (checksum_fold(checksum_add(0, header, header_size)) != 0xffff) {
    return PacketVerdict::kBadChecksum;
  }
  if ((load_big16(header + kIpv4FragmentOffset) & kIpv4FragmentMask) != 0) {
    return PacketVerdict::kFragment;
  }
  const uint8_t* source = header + kIpv4SourceOffset;
  if (header[kIpv4ProtocolOffset] != kIpProtocolUdp || !is_ipv4_host(source) ||
      !is_ipv4_host(source + kIpv4AddressSize)) {
    return PacketVerdict::kNotForUs;
  }
  packet.ip_version = 4;
  packet.l4_offset = static_cast<uint16_t>(packet.l3_offset + header_size);
  payload_size = total_size - header_size;
  return PacketVerdict::kRequest;
}

// Whether a header of this kind may lie between IPv6's and UDP's.
WC_HD constexpr bool is_ipv6_extension(uint8_t next) {
  return next == kIpv6HopByHop || next == kIpv6Routing || next == kIpv6DestinationOptions;
}

// Whether the packet with this IPv6 header carries UDP from one host to another. `next`: what
// follows its last extension header.
WC_HD inline PacketVerdict check_ipv6_payload(const uint8_t* header, uint8_t next) {
  if (next == kIpv6Fragment) return PacketVerdict::kFragment;
  const uint8_t* source = header + kIpv6SourceOffset;
  if (next != kIpProtocolUdp || !is_ipv6_host(source) || !is_ipv6_host(source + kIpv6AddressSize)) {
    return PacketVerdict::kNotForUs;
  }
  return PacketVerdict::kRequest;
}

// The same for IPv6. kExtensions: l4_offset is that of the first extension header.
WC_HD inline PacketVerdict parse_ipv6(Bytes frame, Packet& packet, uint32_t& payload_size) {
  const uint8_t* header = frame.data + packet.l3_offset;
  const size_t left = frame.size - packet.l3_offset;
  if (left < kIpv6HeaderSize) return PacketVerdict::kTruncated;
  if (header[0] >> 4 != 6) return PacketVerdict::kUnsupported;
  payload_size = load_big16(header + kIpv6LengthOffset);
  if (payload_size > left - kIpv6HeaderSize) return PacketVerdict::kTruncated;
  packet.ip_version = 6;
  packet.l4_offset = static_cast<uint16_t>(packet.l3_offset + kIpv6HeaderSize);
  const uint8_t next = header[kIpv6NextHeaderOffset];
  if (is_ipv6_extension(next)) return PacketVerdict::kExtensions;
  return check_ipv6_payload(header, next);
}

// Writes the header of the reply to `request`: addresses swapped, no options, a payload of
// `payload_size` bytes. REQUIRES: `out` has 20 bytes that do not overlap `request`;
// payload_size <= 65515.
WC_HD inline void compose_ipv4_reply(const uint8_t* request, uint32_t payload_size, uint8_t* out) {
  out[0] = 0x45;
  out[1] = 0;
  store_big16(out + kIpv4LengthOffset, static_cast<uint16_t>(kIpv4HeaderSize + payload_size));
  store_big16(out + 4, uint16_t{0});
  store_big16(out + kIpv4FragmentOffset, kIpv4DontFragment);
  out[8] = kReplyHopLimit;
  out[kIpv4ProtocolOffset] = kIpProtocolUdp;
  store_big16(out + kIpv4ChecksumOffset, uint16_t{0});
  const uint8_t* source = request + kIpv4SourceOffset;
  __builtin_memcpy(out + kIpv4SourceOffset, source + kIpv4AddressSize, kIpv4AddressSize);
  __builtin_memcpy(out + kIpv4SourceOffset + kIpv4AddressSize, source, kIpv4AddressSize);
  const uint16_t sum = checksum_fold(checksum_add(0, out, kIpv4HeaderSize));
  store_as(out + kIpv4ChecksumOffset, static_cast<uint16_t>(~sum));
}

// The same for IPv6: 40 bytes, no flow label; payload_size <= 65535.
WC_HD inline void compose_ipv6_reply(const uint8_t* request, uint32_t payload_size, uint8_t* out) {
  store_big32(out, uint32_t{6} << 28);
  store_big16(out + kIpv6LengthOffset, static_cast<uint16_t>(payload_size));
  out[kIpv6NextHeaderOffset] = kIpProtocolUdp;
  out[kIpv6HopLimitOffset] = kReplyHopLimit;
  const uint8_t* source = request + kIpv6SourceOffset;
  __builtin_memcpy(out + kIpv6SourceOffset, source + kIpv6AddressSize, kIpv6AddressSize);
  __builtin_memcpy(out + kIpv6SourceOffset + kIpv6AddressSize, source, kIpv6AddressSize);
}

}  // namespace warpcache::net
