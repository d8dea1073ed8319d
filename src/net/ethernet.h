// SPDX-License-Identifier: Apache-2.0
//
// Ethernet II headers with up to two VLAN tags (IEEE 802.1Q, 802.1ad). Frames have no frame check
// sequence (FCS).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/hd.h"
#include "base/mem.h"
#include "net/packet_types.h"

namespace warpcache::net {

inline constexpr uint32_t kMacAddressSize = 6;
inline constexpr uint32_t kEtherTypeOffset = 2 * kMacAddressSize;
inline constexpr uint32_t kEthernetHeaderSize = kEtherTypeOffset + 2;  // without VLAN tags
inline constexpr uint32_t kVlanTagSize = 4;
inline constexpr uint32_t kVlanTagsMax = 2;
inline constexpr uint32_t kEthernetFrameMin = 60;  // shorter frames are padded

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
inline constexpr uint16_t kEtherTypeVlan = 0x8100;         // 802.1Q
inline constexpr uint16_t kEtherTypeServiceVlan = 0x88a8;  // 802.1ad

WC_HD constexpr bool is_vlan_tag(uint16_t ether_type) {
  return ether_type == kEtherTypeVlan || ether_type == kEtherTypeServiceVlan;
}

WC_HD constexpr uint32_t ethernet_header_size(uint32_t vlan_count) {
  return kEthernetHeaderSize + vlan_count * kVlanTagSize;
}

// Fills the packet's vlan_count and l3_offset, and `ether_type` with the type after the tags.
// kRequest: continue with the IP header. Frames from or to a group address are kNotForUs, because a
// reply must not have a group address as its source or destination.
WC_HD inline PacketVerdict parse_ethernet(Bytes frame, Packet& packet, uint16_t& ether_type) {
  if (frame.size < kEthernetHeaderSize) return PacketVerdict::kTruncated;
  if (((frame.data[0] | frame.data[kMacAddressSize]) & 1) != 0) return PacketVerdict::kNotForUs;
  uint32_t at = kEtherTypeOffset;
  ether_type = load_big16(frame.data + at);
  packet.vlan_count = 0;
  while (is_vlan_tag(ether_type)) {
    if (packet.vlan_count == kVlanTagsMax) return PacketVerdict::kUnsupported;
    ++packet.vlan_count;
    at += kVlanTagSize;
    if (frame.size < at + 2) return PacketVerdict::kTruncated;
    ether_type = load_big16(frame.data + at);
  }
  packet.l3_offset = static_cast<uint16_t>(at + 2);
  return PacketVerdict::kRequest;
}

// Writes the header of the reply to `request`: swaps the addresses, keeps VLAN tags and EtherType.
// REQUIRES: `request` has `vlan_count` tags; `out` has ethernet_header_size() bytes that do not
// overlap `request`.
WC_HD inline void compose_ethernet_reply(const uint8_t* request, uint32_t vlan_count,
                                         uint8_t* out) {
  __builtin_memcpy(out, request + kMacAddressSize, kMacAddressSize);
  __builtin_memcpy(out + kMacAddressSize, request, kMacAddressSize);
  const uint32_t size = ethernet_header_size(vlan_count);
  for (uint32_t at = kEtherTypeOffset; at < size; at += 2) {
    store_as(out + at, load_as<uint16_t>(request + at));
  }
}

WC_HD constexpr uint32_t padded_frame_size(uint32_t size) {
  return size < kEthernetFrameMin ? kEthernetFrameMin : size;
}

// Pads a frame of `size` bytes with zeros; returns padded_frame_size(). REQUIRES: `frame` has that
// many bytes.
WC_HD inline uint32_t pad_frame(uint8_t* frame, uint32_t size) {
  for (; size < kEthernetFrameMin; ++size) frame[size] = 0;
  return size;
}

}  // namespace warpcache::net
