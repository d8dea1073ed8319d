// SPDX-License-Identifier: Apache-2.0
//
// Requests in whole Ethernet frames, for ports that see the headers themselves: reads a frame's
// headers and writes those of its reply. Ethernet, IP and UDP have a file each. The calls in order:
//
//   parse_packet()           of the frame; only kRequest continues
//   parse_udp_header()       of the payload (udp_frame.h), then as with a datagram from a socket
//   compose_reply_headers()  for each datagram of the reply, before its payload
//   finish_udp_checksum()    when the payload is complete
//   pad_frame()              (ethernet.h); then the frame is ready
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/hd.h"
#include "net/ethernet.h"
#include "net/ip.h"
#include "net/ipv6_extensions.h"
#include "net/packet_types.h"
#include "net/udp.h"

namespace warpcache::net {

// The largest reply headers: two VLAN tags, IPv6, UDP.
inline constexpr uint32_t kReplyHeadersMax =
    kEthernetHeaderSize + kVlanTagsMax * kVlanTagSize + kIpv6HeaderSize + kUdpProtocolHeaderSize;

// The largest UDP payload of a reply that both IP versions can carry.
inline constexpr uint32_t kReplyUdpPayloadMax =
    UINT16_MAX - kIpv4HeaderSize - kUdpProtocolHeaderSize;

namespace packet_detail {

// `parse_transport(frame, size, packet)` reads the UDP header.
template <bool kSkipsExtensions, typename ParseTransport>
WC_HD inline PacketVerdict parse_headers(Bytes frame, Packet& packet,
                                         const ParseTransport& parse_transport) {
  packet = Packet{};
  uint16_t ether_type = 0;
  PacketVerdict verdict = parse_ethernet(frame, packet, ether_type);
  if (verdict != PacketVerdict::kRequest) return verdict;
  uint32_t size = 0;
  if (ether_type == kEtherTypeIpv4) {
    verdict = parse_ipv4(frame, packet, size);
  } else if (ether_type == kEtherTypeIpv6) {
    verdict = parse_ipv6(frame, packet, size);
    if constexpr (kSkipsExtensions) {
      if (verdict == PacketVerdict::kExtensions) {
        verdict = skip_ipv6_extensions(frame, packet, size);
      }
    }
  } else {
    verdict = PacketVerdict::kNotForUs;
  }
  if (verdict != PacketVerdict::kRequest) return verdict;
  return parse_transport(frame, size, packet);
}

}  // namespace packet_detail

// Reads the headers of `frame` and verifies their lengths and checksums. `packet` is valid only
// after kRequest. Bytes after the IP datagram are padding. Any unicast address is accepted as the
// destination; source and destination must both be single hosts.
WC_HD inline PacketVerdict parse_packet(Bytes frame, uint16_t udp_port, Packet& packet) {
  return packet_detail::parse_headers<true>(frame, packet,
                                            [udp_port](Bytes whole, uint32_t size, Packet& parts) {
                                              return parse_udp(whole, size, udp_port, parts);
                                            });
}

// The same without UDP's checksum: see udp_is_intact().
WC_HD inline PacketVerdict parse_packet_headers(Bytes frame, uint16_t udp_port, Packet& packet) {
  return packet_detail::parse_headers<true>(
      frame, packet, [udp_port](Bytes whole, uint32_t size, Packet& parts) {
        return parse_udp_header_fields(whole, size, udp_port, parts);
      });
}

// For kernels, which leave rare forms to the host: as the functions above, but a frame with IPv6
// extension headers is kExtensions, whatever else it is.
WC_HD inline PacketVerdict parse_packet_without_extensions(Bytes frame, uint16_t udp_port,
                                                           Packet& packet) {
  return packet_detail::parse_headers<false>(frame, packet,
                                             [udp_port](Bytes whole, uint32_t size, Packet& parts) {
                                               return parse_udp(whole, size, udp_port, parts);
                                             });
}

WC_HD inline PacketVerdict parse_packet_headers_without_extensions(Bytes frame, uint16_t udp_port,
                                                                   Packet& packet) {
  return packet_detail::parse_headers<false>(
      frame, packet, [udp_port](Bytes whole, uint32_t size, Packet& parts) {
        return parse_udp_header_fields(whole, size, udp_port, parts);
      });
}

// Where the parts of a frame lie for which parse_packet() has returned kRequest, whatever has
// become of its payload since.
WC_HD inline Packet packet_of_request(Bytes frame) {
  Packet packet = {};
  uint16_t ether_type = 0;
  uint32_t size = 0;
  (void)parse_ethernet(frame, packet, ether_type);
  const PacketVerdict verdict = ether_type == kEtherTypeIpv4 ? parse_ipv4(frame, packet, size)
                                                             : parse_ipv6(frame, packet, size);
  if (verdict == PacketVerdict::kExtensions) (void)skip_ipv6_extensions(frame, packet, size);
  place_udp_payload(frame, packet);
  return packet;
}

// Bytes of a reply's headers before the UDP payload. A reply has no IP options or extension
// headers.
WC_HD constexpr uint32_t reply_headers_size(const Packet& request) {
  return ethernet_header_size(request.vlan_count) + ip_reply_header_size(request.ip_version) +
         kUdpProtocolHeaderSize;
}

// Bytes of a reply frame, padding included.
WC_HD constexpr uint32_t reply_frame_size(const Packet& request, uint32_t udp_payload_size) {
  return padded_frame_size(reply_headers_size(request) + udp_payload_size);
}

// Writes the headers of a reply whose datagram carries `udp_payload_size` bytes (memcached's UDP
// header included), without the UDP checksum. `request` is the result of parse_packet() for
// `request_frame`. REQUIRES: `out` has reply_headers_size() bytes that do not overlap the request's
// headers; udp_payload_size <= kReplyUdpPayloadMax.
WC_HD inline void compose_reply_headers(const uint8_t* request_frame, const Packet& request,
                                        uint32_t udp_payload_size, uint8_t* out) {
  compose_ethernet_reply(request_frame, request.vlan_count, out);
  uint8_t* ip = out + ethernet_header_size(request.vlan_count);
  const uint32_t ip_payload_size = kUdpProtocolHeaderSize + udp_payload_size;
  if (request.ip_version == 4) {
    compose_ipv4_reply(request_frame + request.l3_offset, ip_payload_size, ip);
  } else {
    compose_ipv6_reply(request_frame + request.l3_offset, ip_payload_size, ip);
  }
  compose_udp_reply(request_frame + request.l4_offset, udp_payload_size,
                    ip + ip_reply_header_size(request.ip_version));
}

// finish_udp_checksum() for a caller that has the payload's sum already: `payload_sum` is
// checksum_add(0, ...) of the payload.
WC_HD inline void finish_udp_checksum_of_sum(const Packet& request, uint32_t udp_payload_size,
                                             uint64_t payload_sum, uint8_t* reply) {
  if (!request.has_udp_checksum) return;
  const uint32_t l3_offset = ethernet_header_size(request.vlan_count);
  uint8_t* header = reply + l3_offset + ip_reply_header_size(request.ip_version);
  const uint64_t pseudo =
      udp_pseudo_header_sum(reply, l3_offset, request.ip_version,
                            static_cast<uint16_t>(kUdpProtocolHeaderSize + udp_payload_size));
  const uint64_t sum = checksum_add(pseudo, header, kUdpProtocolHeaderSize) + payload_sum;
  store_as(header + kUdpChecksumOffset, udp_checksum(sum));
}

// Writes the UDP checksum of a reply whose payload follows its headers: for IPv4 if the request had
// a checksum, for IPv6 always. REQUIRES: compose_reply_headers() with the same `request` and size
// has written to `reply`; the checksum has not been written yet.
WC_HD inline void finish_udp_checksum(const Packet& request, uint32_t udp_payload_size,
                                      uint8_t* reply) {
  if (!request.has_udp_checksum) return;
  const uint64_t payload_sum =
      checksum_add(0, reply + reply_headers_size(request), udp_payload_size);
  finish_udp_checksum_of_sum(request, udp_payload_size, payload_sum, reply);
}

}  // namespace warpcache::net
