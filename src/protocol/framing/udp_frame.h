// SPDX-License-Identifier: Apache-2.0
//
// The header that memcached puts before every UDP datagram, and how a reply is divided into
// datagrams. Each datagram of a reply has a header: the request's id, the datagram's number and the
// count of datagrams.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/hd.h"
#include "base/mem.h"

namespace warpcache::protocol {

inline constexpr uint32_t kUdpHeaderSize = 8;
inline constexpr uint32_t kUdpDatagramMax =
    1400;  // with the header: fits an Ethernet frame, tunnels included
inline constexpr uint32_t kUdpPayloadMax = kUdpDatagramMax - kUdpHeaderSize;
inline constexpr uint32_t kUdpDatagramCountMax = UINT16_MAX;
inline constexpr uint32_t kUdpReplyMax = kUdpDatagramCountMax * kUdpPayloadMax;

struct UdpHeader {
  uint16_t request_id = 0;
  uint16_t sequence = 0;
  uint16_t count = 1;
};

enum class UdpVerdict : uint8_t {
  kRequest,    // the payload is a request of its own
  kMultiPart,  // a part of a larger request: dropped
  kTooShort,   // no header: dropped
};

WC_HD inline UdpVerdict parse_udp_header(Bytes datagram, UdpHeader& header) {
  if (datagram.size <= kUdpHeaderSize) return UdpVerdict::kTooShort;
  header.request_id = load_big16(datagram.data);
  header.sequence = load_big16(datagram.data + 2);
  header.count = load_big16(datagram.data + 4);
  return header.count == 1 ? UdpVerdict::kRequest : UdpVerdict::kMultiPart;
}

// REQUIRES: `out` has kUdpHeaderSize bytes.
WC_HD inline void compose_udp_header(const UdpHeader& header, uint8_t* out) {
  store_big16(out, header.request_id);
  store_big16(out + 2, header.sequence);
  store_big16(out + 4, header.count);
  store_big16(out + 6, uint16_t{0});
}

// Datagrams of a reply of `size` bytes; 0 for an empty one. REQUIRES: size <= kUdpReplyMax.
WC_HD constexpr uint32_t udp_datagram_count(uint32_t size) {
  return divided_up(size, kUdpPayloadMax);
}

// Bytes that datagram number `sequence` of a reply of `size` bytes carries. They start at
// sequence * kUdpPayloadMax of the reply. REQUIRES: sequence < udp_datagram_count(size).
WC_HD constexpr uint32_t udp_payload_size(uint32_t size, uint32_t sequence) {
  const uint32_t left = size - sequence * kUdpPayloadMax;
  return left < kUdpPayloadMax ? left : kUdpPayloadMax;
}

}  // namespace warpcache::protocol
