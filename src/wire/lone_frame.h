// SPDX-License-Identifier: Apache-2.0
//
// What lone_get.h and lone_set.h share: frames whose headers are the usual ones, UDP over IPv4
// without VLAN tags and IP options, and whose payload is one command on one key. All fields up to
// the key lie at fixed, even offsets, and are read and written as words.
#pragma once

#include <cstdint>

#include "base/hd.h"
#include "base/mem.h"
#include "base/number.h"
#include "wire/checksum.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/message.h"
#include "wire/udp.h"
#include "wire/udp_frame.h"

namespace warpcache::wire {

// Where the key lies in the frame.
inline constexpr uint32_t kLoneKeyOffset =
    kEthernetHeaderSize + kIpv4HeaderSize + kUdpProtocolHeaderSize + kUdpHeaderSize + 4;

namespace lone_detail {

inline constexpr uint32_t kIp = kEthernetHeaderSize;
inline constexpr uint32_t kUdp = kIp + kIpv4HeaderSize;
inline constexpr uint32_t kMemcached = kUdp + kUdpProtocolHeaderSize;
inline constexpr uint32_t kPayload = kMemcached + kUdpHeaderSize;
inline constexpr uint32_t kKey = kLoneKeyOffset;
static_assert(kKey == kPayload + 4);  // behind "get ", "set "
inline constexpr uint32_t kAddresses = kIp + kIpv4SourceOffset;
static_assert(kIp % 4 == 2 && kAddresses % 4 == 2 && kKey % 4 == 2);

// REQUIRES: `frame` + `at` is a multiple of the word's size.
WC_HD inline uint32_t word32(const uint8_t* frame, uint32_t at) {
  return load_aligned<uint32_t>(frame + at);
}
WC_HD inline uint16_t word16(const uint8_t* frame, uint32_t at) {
  return load_aligned<uint16_t>(frame + at);
}
WC_HD inline void put16(uint8_t* frame, uint32_t at, uint32_t word) {
  const auto value = static_cast<uint16_t>(word);
  __builtin_memcpy(__builtin_assume_aligned(frame + at, 2), &value, 2);
}

// A number in network order, as the machine loads it.
WC_HD constexpr uint32_t big16(uint32_t number) {
  return (number >> 8 & 0xff) | (number & 0xff) << 8;
}

WC_HD constexpr uint32_t zero_bytes(uint32_t word) {
  return (word - 0x01010101u) & ~word & 0x80808080u;
}

// The checksum's sum over [begin, end). REQUIRES: begin % 4 == 2, begin < end.
WC_HD inline uint64_t sum_of(const uint8_t* frame, uint32_t begin, uint32_t end) {
  uint64_t sum = word16(frame, begin);
  uint32_t at = begin + 2;
  for (; at + 4 <= end; at += 4) sum += word32(frame, at);
  if (at < end) sum += word32(frame, at) & (0xffffffffu >> (8 * (at + 4 - end)));
  return sum;
}

// Over addresses, UDP header and payload, and what the pseudo header has besides.
WC_HD inline uint64_t udp_sum(const uint8_t* frame, uint32_t udp_size) {
  return sum_of(frame, kAddresses, kUdp + udp_size) + big16(kIpProtocolUdp) + big16(udp_size);
}

WC_HD inline bool is_host(uint32_t first_byte) { return first_byte - 1 < 223; }

// Everything but the payload. False: an exception, or wrong.
WC_HD inline bool has_usual_headers(const uint8_t* frame, uint32_t size, uint16_t udp_port) {
  const uint32_t total = big16(word16(frame, kIp + kIpv4LengthOffset));
  const bool ethernet = ((frame[0] | frame[kMacAddressSize]) & 1) == 0 &&
                        word16(frame, kEtherTypeOffset) == big16(kEtherTypeIpv4);
  const bool ip = frame[kIp] == 0x45 && total <= size - kIp &&
                  (word16(frame, kIp + kIpv4FragmentOffset) & big16(kIpv4FragmentMask)) == 0 &&
                  frame[kIp + kIpv4ProtocolOffset] == kIpProtocolUdp &&
                  is_host(frame[kAddresses]) && is_host(frame[kAddresses + kIpv4AddressSize]);
  const uint32_t udp_size = big16(word16(frame, kUdp + kUdpLengthOffset));
  const bool udp = word16(frame, kUdp) != 0 &&
                   word16(frame, kUdp + kUdpDestinationOffset) == big16(udp_port) &&
                   udp_size + kIpv4HeaderSize <= total;
  const bool one = word16(frame, kMemcached + 4) == big16(1);
  return ethernet && ip && udp && one && checksum_fold(sum_of(frame, kIp, kUdp)) == 0xffff;
}

// Whether the sender has computed a UDP checksum, and it is wrong.
WC_HD inline bool has_wrong_checksum(const uint8_t* frame, uint32_t udp_size) {
  return word16(frame, kUdp + kUdpChecksumOffset) != 0 &&
         checksum_fold(udp_sum(frame, udp_size)) != 0xffff;
}

// Headers of a reply of `size` bytes, memcached's among them; no UDP checksum yet. All is read
// before anything is written: a device waits once.
WC_HD inline void put_headers(const uint8_t* frame, uint32_t size, uint8_t* out) {
  uint16_t macs[kMacAddressSize];
  uint16_t addresses[kIpv4AddressSize];
  WC_UNROLL
  for (uint32_t i = 0; i < kMacAddressSize; ++i) macs[i] = word16(frame, 2 * i);
  WC_UNROLL
  for (uint32_t i = 0; i < kIpv4AddressSize; ++i) addresses[i] = word16(frame, kAddresses + 2 * i);
  const uint32_t source_port = word16(frame, kUdp);
  const uint32_t destination_port = word16(frame, kUdp + kUdpDestinationOffset);
  const uint32_t request_id = word16(frame, kMemcached);
  WC_UNROLL
  for (uint32_t i = 0; i < kMacAddressSize / 2; ++i) {
    put16(out, 2 * i, macs[kMacAddressSize / 2 + i]);
    put16(out, kMacAddressSize + 2 * i, macs[i]);
  }
  put16(out, kEtherTypeOffset, big16(kEtherTypeIpv4));
  const uint32_t words[5] = {0x45, big16(size - kIp), 0, big16(kIpv4DontFragment),
                             kReplyHopLimit | uint32_t{kIpProtocolUdp} << 8};
  uint32_t sum = 0;
  WC_UNROLL
  for (uint32_t i = 0; i < 5; ++i) {
    put16(out, kIp + 2 * i, words[i]);
    sum += words[i];
  }
  WC_UNROLL
  for (uint32_t i = 0; i < kIpv4AddressSize / 2; ++i) {
    const uint16_t source = addresses[i];
    const uint16_t destination = addresses[kIpv4AddressSize / 2 + i];
    put16(out, kAddresses + 2 * i, destination);
    put16(out, kAddresses + kIpv4AddressSize + 2 * i, source);
    sum += uint32_t{source} + destination;
  }
  put16(out, kIp + kIpv4ChecksumOffset, ~uint32_t{checksum_fold(sum)});
  put16(out, kUdp, destination_port);
  put16(out, kUdp + kUdpDestinationOffset, source_port);
  put16(out, kUdp + kUdpLengthOffset, big16(size - kUdp));
  put16(out, kUdp + kUdpChecksumOffset, 0);
  put16(out, kMemcached, request_id);
  put16(out, kMemcached + 2, 0);
  put16(out, kMemcached + 4, big16(1));
  put16(out, kMemcached + 6, 0);
}

// Writes a reply frame of `size` bytes of text, which the smallest Ethernet frame has room for.
// REQUIRES: room for kEthernetFrameMin bytes at `out`, a multiple of 4.
template <uint32_t kSize>
WC_HD inline void compose_short_reply(const uint8_t* frame, const char (&text)[kSize],
                                      bool has_udp_checksum, uint8_t* out) {
  constexpr uint32_t kEnd = kPayload + kSize - 1;
  static_assert(kEnd <= kEthernetFrameMin);
  put_headers(frame, kEnd, out);
  (void)put(out + kPayload, text);
  for (uint32_t at = kEnd; at < kEthernetFrameMin; ++at) out[at] = 0;
  if (has_udp_checksum) {
    put16(out, kUdp + kUdpChecksumOffset, udp_checksum(udp_sum(out, kEnd - kUdp)));
  }
}

}  // namespace lone_detail

}  // namespace warpcache::wire
