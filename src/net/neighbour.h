// SPDX-License-Identifier: Apache-2.0
//
// What a port that shares a link with the kernel must do besides UDP: answer who has an address
// (ARP, RFC 826; IPv6 neighbour solicitation, RFC 4861), and send a packet back to its sender. Host
// only.
#pragma once

#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/mem.h"
#include "net/checksum.h"
#include "net/ethernet.h"
#include "net/ip.h"

namespace warpcache::net {

inline constexpr uint16_t kEtherTypeArp = 0x0806;
inline constexpr uint32_t kArpReplySize = kEthernetFrameMin;
inline constexpr uint32_t kNeighbourReplySize = kEthernetHeaderSize + kIpv6HeaderSize + 32;
// Space for either reply.
inline constexpr uint32_t kNeighbourFrameMax = kNeighbourReplySize;

// Offsets in an ARP packet for IPv4 over Ethernet.
inline constexpr uint8_t kArpHead[] = {0, 1, 8, 0, 6, 4, 0, 1};  // types, sizes, "request"
inline constexpr uint32_t kArpOperationOffset = 7;
inline constexpr uint32_t kArpSenderOffset = 8;  // MAC, then IPv4 address
inline constexpr uint32_t kArpTargetOffset = 18;
inline constexpr uint32_t kArpSize = 28;

inline constexpr uint8_t kIpProtocolIcmp = 1;
inline constexpr uint8_t kIpProtocolIcmpv6 = 58;
inline constexpr uint32_t kIcmpHeaderSize = 8;
inline constexpr uint8_t kSolicitation = 135;
inline constexpr uint8_t kAdvertisement = 136;
inline constexpr uint8_t kSolicitedOverride = 0x60;
inline constexpr uint8_t kTargetLinkAddress = 2;  // option
inline constexpr uint32_t kIcmpTargetOffset = 8;
inline constexpr uint32_t kSolicitationSize = 24;  // without options

// Whether an ICMP message of this type reports an error, and so has the packet that caused it
// after its header.
inline bool is_icmp_error(bool ipv4, uint8_t type) {
  return ipv4 ? type == 3 || type == 4 || type == 5 || type == 11 || type == 12 : type < 128;
}

// Swaps the addresses of the IP header at `at`. False: there is no complete header, or one of the
// addresses is not a host's; the frame is unchanged.
inline bool swap_addresses(MutableBytes frame, size_t at, bool ipv4) {
  if (frame.size < at + (ipv4 ? kIpv4HeaderSize : kIpv6HeaderSize)) return false;
  uint8_t* const header = frame.data + at;
  const uint32_t size = ipv4 ? kIpv4AddressSize : kIpv6AddressSize;
  uint8_t* const source = header + (ipv4 ? kIpv4SourceOffset : kIpv6SourceOffset);
  uint8_t* const destination = source + size;
  const auto is_host = ipv4 ? is_ipv4_host : is_ipv6_host;
  if (!is_host(source) || !is_host(destination)) return false;
  for (uint32_t i = 0; i < size; ++i) std::swap(source[i], destination[i]);
  return true;
}

// Writes the reply to an ARP request for an address other than the sender's own: `mac` has it.
// Returns its size, or 0 if the frame is no such request. REQUIRES: `out` has kArpReplySize bytes.
inline uint32_t answer_arp(Bytes frame, const uint8_t* mac, uint8_t* out) {
  if (frame.size < kEthernetHeaderSize + kArpSize) return 0;
  if (load_big16(frame.data + kEtherTypeOffset) != kEtherTypeArp) return 0;
  const uint8_t* const arp = frame.data + kEthernetHeaderSize;
  if (!mem_equal(arp, kArpHead, sizeof kArpHead)) return 0;
  const uint8_t* const sender = arp + kArpSenderOffset;
  const uint8_t* const asked = arp + kArpTargetOffset + kMacAddressSize;
  const uint8_t* const own = sender + kMacAddressSize;
  // A sender without an address looks whether another host has it already (RFC 5227).
  if (!is_ipv4_host(own) || !is_ipv4_host(asked)) return 0;
  if (mem_equal(own, asked, kIpv4AddressSize)) return 0;
  mem_copy(out, frame.data + kMacAddressSize, kMacAddressSize);
  mem_copy(out + kMacAddressSize, mac, kMacAddressSize);
  store_big16(out + kEtherTypeOffset, kEtherTypeArp);
  uint8_t* const reply = out + kEthernetHeaderSize;
  mem_copy(reply, kArpHead, sizeof kArpHead);
  reply[kArpOperationOffset] = 2;
  mem_copy(reply + kArpSenderOffset, mac, kMacAddressSize);
  mem_copy(reply + kArpSenderOffset + kMacAddressSize, asked, kIpv4AddressSize);
  mem_copy(reply + kArpTargetOffset, sender, kMacAddressSize + kIpv4AddressSize);
  return pad_frame(out, kEthernetHeaderSize + kArpSize);
}

// The same for an IPv6 neighbour solicitation. REQUIRES: `out` has kNeighbourReplySize bytes.
inline uint32_t answer_solicitation(Bytes frame, const uint8_t* mac, uint8_t* out) {
  constexpr uint32_t kHeaders = kEthernetHeaderSize + kIpv6HeaderSize;
  if (frame.size < kHeaders + kSolicitationSize) return 0;
  if (load_big16(frame.data + kEtherTypeOffset) != kEtherTypeIpv6) return 0;
  const uint8_t* const ip = frame.data + kEthernetHeaderSize;
  const uint8_t* const icmp = frame.data + kHeaders;
  if (ip[kIpv6NextHeaderOffset] != kIpProtocolIcmpv6 || ip[kIpv6HopLimitOffset] != 255) return 0;
  if (icmp[0] != kSolicitation || icmp[1] != 0) return 0;
  const uint8_t* const sender = ip + kIpv6SourceOffset;
  const uint8_t* const asked = icmp + kIcmpTargetOffset;
  if (!is_ipv6_host(sender) || !is_ipv6_host(asked)) return 0;
  if (mem_equal(sender, asked, kIpv6AddressSize)) return 0;
  mem_copy(out, frame.data + kMacAddressSize, kMacAddressSize);
  mem_copy(out + kMacAddressSize, mac, kMacAddressSize);
  store_big16(out + kEtherTypeOffset, kEtherTypeIpv6);
  uint8_t* const reply = out + kEthernetHeaderSize;
  constexpr uint16_t kPayload = kSolicitationSize + 8;
  for (uint32_t i = 0; i < kIpv6HeaderSize + kPayload; ++i) reply[i] = 0;
  reply[0] = 0x60;
  store_big16(reply + kIpv6LengthOffset, kPayload);
  reply[kIpv6NextHeaderOffset] = kIpProtocolIcmpv6;
  reply[kIpv6HopLimitOffset] = 255;
  mem_copy(reply + kIpv6SourceOffset, asked, kIpv6AddressSize);
  mem_copy(reply + kIpv6SourceOffset + kIpv6AddressSize, sender, kIpv6AddressSize);
  uint8_t* const advert = reply + kIpv6HeaderSize;
  advert[0] = kAdvertisement;
  advert[4] = kSolicitedOverride;
  mem_copy(advert + kIcmpTargetOffset, asked, kIpv6AddressSize);
  advert[kSolicitationSize] = kTargetLinkAddress;
  advert[kSolicitationSize + 1] = 1;  // in units of 8 bytes
  mem_copy(advert + kSolicitationSize + 2, mac, kMacAddressSize);
  uint64_t sum = checksum_add(0, reply + kIpv6SourceOffset, 2 * kIpv6AddressSize);
  sum = checksum_add16(checksum_add16(sum, kPayload), kIpProtocolIcmpv6);
  sum = checksum_add(sum, advert, kPayload);
  store_as(advert + 2, static_cast<uint16_t>(~checksum_fold(sum)));
  return kNeighbourReplySize;
}

// Swaps source and destination of a frame that carries IP from one host to another, so that its
// sender gets it as if the destination had sent it; in an ICMP error also those of the packet that
// it is about. Checksums stay valid. False: it is no such frame, and is unchanged.
inline bool send_back(MutableBytes frame) {
  Packet packet = {};
  uint16_t ether_type = 0;
  if (parse_ethernet(frame, packet, ether_type) != PacketVerdict::kRequest) return false;
  const bool ipv4 = ether_type == kEtherTypeIpv4;
  if (!ipv4 && ether_type != kEtherTypeIpv6) return false;
  if (!swap_addresses(frame, packet.l3_offset, ipv4)) return false;
  for (uint32_t i = 0; i < kMacAddressSize; ++i) {
    std::swap(frame.data[i], frame.data[kMacAddressSize + i]);
  }
  const uint8_t* const ip = frame.data + packet.l3_offset;
  const uint8_t protocol = ip[ipv4 ? kIpv4ProtocolOffset : kIpv6NextHeaderOffset];
  const size_t icmp = packet.l3_offset + (ipv4 ? (ip[0] & 0x0fu) * 4 : kIpv6HeaderSize);
  if (protocol == (ipv4 ? kIpProtocolIcmp : kIpProtocolIcmpv6) && icmp < frame.size &&
      is_icmp_error(ipv4, frame.data[icmp])) {
    (void)swap_addresses(frame, icmp + kIcmpHeaderSize, ipv4);
  }
  return true;
}

}  // namespace warpcache::net
