// SPDX-License-Identifier: Apache-2.0
//
// Shared by get.h and set.h, the single-key fast path: frames with the usual headers (UDP over
// IPv4, no VLAN tags, no IP options) and one command on one key as their payload. All fields up to
// the key lie at fixed, even offsets; they are read and written as words.
#pragma once

#include <cstdint>

#include "base/hd.h"
#include "base/mem.h"
#include "base/number.h"
#include "net/checksum.h"
#include "net/ethernet.h"
#include "net/ip.h"
#include "net/udp.h"
#include "protocol/framing/udp_frame.h"
#include "protocol/message.h"

namespace warpcache::protocol {

// Offset of the key in the frame.
inline constexpr uint32_t kSingleKeyOffset = net::kEthernetHeaderSize + net::kIpv4HeaderSize +
                                             net::kUdpProtocolHeaderSize + kUdpHeaderSize + 4;

// The largest reply frame: the usual headers and the largest datagram.
inline constexpr uint32_t kSingleKeyReplyMax =
    net::kEthernetHeaderSize + net::kIpv4HeaderSize + net::kUdpProtocolHeaderSize + kUdpDatagramMax;

// The key in a frame whose address is a multiple of 4.
using SingleKeyBytes = WordBytes<kSingleKeyOffset % 4>;

namespace single_key {

inline constexpr uint32_t kIp = net::kEthernetHeaderSize;
inline constexpr uint32_t kUdp = kIp + net::kIpv4HeaderSize;
inline constexpr uint32_t kMemcached = kUdp + net::kUdpProtocolHeaderSize;
inline constexpr uint32_t kPayload = kMemcached + kUdpHeaderSize;
inline constexpr uint32_t kKey = kSingleKeyOffset;
static_assert(kKey == kPayload + 4);  // after "get ", "set "
inline constexpr uint32_t kAddresses = kIp + net::kIpv4SourceOffset;
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

WC_HD inline void put32(uint8_t* frame, uint32_t at, uint32_t word) {
  __builtin_memcpy(__builtin_assume_aligned(frame + at, 4), &word, 4);
}

// A number in network byte order, as a load in host byte order gives it.
WC_HD constexpr uint32_t big16(uint32_t number) {
  return (number >> 8 & 0xff) | (number & 0xff) << 8;
}

WC_HD constexpr uint32_t zero_bytes(uint32_t word) {
  return (word - 0x01010101u) & ~word & 0x80808080u;
}

// The Internet checksum's sum over [begin, end). REQUIRES: begin % 4 == 2, begin < end.
WC_HD inline uint64_t sum_of(const uint8_t* frame, uint32_t begin, uint32_t end) {
  uint64_t sum = word16(frame, begin);
  uint32_t at = begin + 2;
  for (; at + 4 <= end; at += 4) sum += word32(frame, at);
  if (at < end) sum += word32(frame, at) & (0xffffffffu >> (8 * (at + 4 - end)));
  return sum;
}

// The sum over the pseudo header, the UDP header and the payload.
WC_HD inline uint64_t udp_sum(const uint8_t* frame, uint32_t udp_size) {
  return sum_of(frame, kAddresses, kUdp + udp_size) + big16(net::kIpProtocolUdp) + big16(udp_size);
}

WC_HD inline bool is_host(uint32_t first_byte) { return first_byte - 1 < 223; }

// The bytes before the key as words. A field of two bytes is half a word; the first one is the
// lower half. A device issues all loads before the first use, so that their latencies overlap.
struct Head {
  static constexpr uint32_t kWords = (kKey + 3) / 4;
  uint32_t words[kWords];

  // The two bytes from `at` on. REQUIRES: `at` is even.
  WC_HD uint32_t half(uint32_t at) const { return words[at / 4] >> (at % 4 * 8) & 0xffff; }
  WC_HD uint32_t byte(uint32_t at) const { return words[at / 4] >> (at % 4 * 8) & 0xff; }
};

// REQUIRES: `frame` + 4 * Head::kWords can be read.
WC_HD inline Head load_head(const uint8_t* frame) {
  Head head;
  WC_UNROLL
  for (uint32_t i = 0; i < Head::kWords; ++i) head.words[i] = word32(frame, 4 * i);
  return head;
}

// Checks the headers. False: they are unusual or faulty. The differences are collected with OR and
// tested once, because early exits would make the lanes of a warp diverge.
WC_HD inline bool has_usual_headers(const Head& head, uint32_t size, uint16_t udp_port) {
  uint32_t differs = (head.byte(0) | head.byte(net::kMacAddressSize)) & 1;
  differs |= head.half(net::kEtherTypeOffset) ^ big16(net::kEtherTypeIpv4);
  differs |= head.byte(kIp) ^ 0x45;
  differs |= head.half(kIp + net::kIpv4FragmentOffset) & big16(net::kIpv4FragmentMask);
  differs |= head.byte(kIp + net::kIpv4ProtocolOffset) ^ net::kIpProtocolUdp;
  differs |= head.half(kUdp + net::kUdpDestinationOffset) ^ big16(udp_port);
  differs |= head.half(kMemcached + 4) ^ big16(1);
  uint32_t sum = 0;
  WC_UNROLL
  for (uint32_t at = kIp; at < kUdp; at += 2) sum += head.half(at);
  differs |= net::checksum_fold(sum) ^ 0xffffu;
  const uint32_t total = big16(head.half(kIp + net::kIpv4LengthOffset));
  const uint32_t udp_size = big16(head.half(kUdp + net::kUdpLengthOffset));
  return differs == 0 && total <= size - kIp && udp_size + net::kIpv4HeaderSize <= total &&
         is_host(head.byte(kAddresses)) && is_host(head.byte(kAddresses + net::kIpv4AddressSize)) &&
         head.half(kUdp) != 0;
}

// Whether the frame has a UDP checksum and it is wrong.
WC_HD inline bool has_wrong_checksum(const Head& head, const uint8_t* frame, uint32_t udp_size) {
  return head.half(kUdp + net::kUdpChecksumOffset) != 0 &&
         net::checksum_fold(udp_sum(frame, udp_size)) != 0xffff;
}

// Writes the headers of a reply of `size` bytes, memcached's included, without the UDP checksum.
// Reads all words before it writes any, so that a device waits for memory once.
WC_HD inline void put_headers(const uint8_t* frame, uint32_t size, uint8_t* out) {
  const Head head = load_head(frame);
  const uint32_t* const in = head.words;
  uint32_t words[kPayload / 4] = {};  // as in Head
  const auto join = [](uint32_t low, uint32_t high) { return low | high << 16; };
  // The first field is the sender's Ethernet address: 6 bytes at offset 6 of the request.
  words[0] = join(in[1] >> 16, in[2]);
  words[1] = join(in[2] >> 16, in[0]);
  words[2] = join(in[0] >> 16, in[1]);
  words[3] = join(big16(net::kEtherTypeIpv4), 0x45);
  words[4] = big16(size - kIp);
  words[5] =
      join(big16(net::kIpv4DontFragment), net::kReplyHopLimit | uint32_t{net::kIpProtocolUdp} << 8);
  // The receiver's IPv4 address (offset 30 of the request) comes before the sender's (offset 26).
  words[6] = join(0, in[7] >> 16);
  words[7] = join(in[8] & 0xffff, in[6] >> 16);
  words[8] = join(in[7] & 0xffff, in[9]);  // and the port it was sent to
  uint32_t sum = 0;
  WC_UNROLL
  for (uint32_t at = kIp; at < kUdp; at += 2) sum += words[at / 4] >> (at % 4 * 8) & 0xffff;
  words[6] |= ~uint32_t{net::checksum_fold(sum)} & 0xffff;
  words[9] = join(in[8] >> 16, big16(size - kUdp));
  words[10] = join(0, in[10] >> 16);  // memcached's request id
  words[11] = join(0, big16(1));
  WC_UNROLL
  for (uint32_t i = 0; i < kPayload / 4; ++i) put32(out, 4 * i, words[i]);
  put16(out, kPayload - 2, 0);
}
static_assert(kIp == 14 && kAddresses == 26 && kUdp == 34 && kMemcached == 42 && kPayload == 50);

// Writes a reply frame with a text that fits into the smallest Ethernet frame. REQUIRES: `out` is a
// multiple of 4 and has kEthernetFrameMin bytes.
template <uint32_t kSize>
WC_HD inline void compose_short_reply(const uint8_t* frame, const char (&text)[kSize],
                                      bool has_udp_checksum, uint8_t* out) {
  constexpr uint32_t kEnd = kPayload + kSize - 1;
  static_assert(kEnd <= net::kEthernetFrameMin);
  put_headers(frame, kEnd, out);
  (void)put(out + kPayload, text);
  for (uint32_t at = kEnd; at < net::kEthernetFrameMin; ++at) out[at] = 0;
  if (has_udp_checksum) {
    put16(out, kUdp + net::kUdpChecksumOffset, net::udp_checksum(udp_sum(out, kEnd - kUdp)));
  }
}

}  // namespace single_key

}  // namespace warpcache::protocol
