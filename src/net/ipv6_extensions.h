// SPDX-License-Identifier: Apache-2.0
//
// IPv6 extension headers (RFC 8200, section 4) between the IPv6 header and UDP's: hop-by-hop
// options, destination options, and routing headers whose route has ended. They say nothing about
// the request, and are skipped. Chains that are longer than the bounds below, or in which a header
// asks for something, are left to the kernel.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/hd.h"
#include "net/ip.h"
#include "net/packet_types.h"

namespace warpcache::net {

inline constexpr uint32_t kIpv6ExtensionsMax = 4;        // headers of a packet
inline constexpr uint32_t kIpv6ExtensionBytesMax = 256;  // of all of them

inline constexpr uint32_t kIpv6ExtensionUnit = 8;  // their sizes are multiples of it, in bytes
inline constexpr uint32_t kIpv6SegmentsLeftOffset = 3;
inline constexpr uint32_t kIpv6OptionsOffset = 2;
inline constexpr uint8_t kIpv6OptionPad1 = 0;  // one byte, without a length
// Of an option's type. Not 0: whoever does not know the option must not go on with the packet.
inline constexpr uint8_t kIpv6OptionActionMask = 0xc0;

// Whether a receiver may skip these options. kUnsupported: one of them is not to be ignored.
WC_HD inline PacketVerdict check_ipv6_options(const uint8_t* options, uint32_t size) {
  for (uint32_t at = 0; at < size;) {
    const uint8_t type = options[at];
    if (type == kIpv6OptionPad1) {
      ++at;
      continue;
    }
    if (size - at < 2 || options[at + 1] > size - at - 2) return PacketVerdict::kTruncated;
    if ((type & kIpv6OptionActionMask) != 0) return PacketVerdict::kUnsupported;
    at += 2u + options[at + 1];
  }
  return PacketVerdict::kRequest;
}

// Continues where parse_ipv6() has returned kExtensions: moves packet.l4_offset past the chain,
// and takes its bytes from `payload_size`. kRequest: UDP follows.
WC_HD inline PacketVerdict skip_ipv6_extensions(Bytes frame, Packet& packet,
                                                uint32_t& payload_size) {
  const uint8_t* const ip = frame.data + packet.l3_offset;
  const uint8_t* const payload = ip + kIpv6HeaderSize;
  uint8_t next = ip[kIpv6NextHeaderOffset];
  uint32_t at = 0;
  for (uint32_t count = 0; is_ipv6_extension(next); ++count) {
    if (count == kIpv6ExtensionsMax) return PacketVerdict::kUnsupported;
    if (payload_size - at < kIpv6ExtensionUnit) return PacketVerdict::kTruncated;
    const uint8_t* const header = payload + at;
    const uint32_t size = (header[1] + 1u) * kIpv6ExtensionUnit;
    if (size > payload_size - at) return PacketVerdict::kTruncated;
    if (at + size > kIpv6ExtensionBytesMax) return PacketVerdict::kUnsupported;
    if (next == kIpv6Routing) {
      if (header[kIpv6SegmentsLeftOffset] != 0) return PacketVerdict::kUnsupported;
    } else {
      if (next == kIpv6HopByHop && count != 0) return PacketVerdict::kUnsupported;
      const PacketVerdict verdict =
          check_ipv6_options(header + kIpv6OptionsOffset, size - kIpv6OptionsOffset);
      if (verdict != PacketVerdict::kRequest) return verdict;
    }
    next = header[0];
    at += size;
  }
  packet.l4_offset = static_cast<uint16_t>(packet.l4_offset + at);
  payload_size -= at;
  return check_ipv6_payload(ip, next);
}

}  // namespace warpcache::net
