// SPDX-License-Identifier: Apache-2.0
//
// The shortest way for what most packets are: "get <key>" in a UDP datagram over IPv4, without VLAN
// tags and IP options. All fields lie at fixed, even offsets then, and are read and written as
// words. What is taken here is a part of what parse_packet(), parse_udp_header() and
// frame_datagram() take, and means the same; the reply is byte for byte that of compose_reply() and
// compose_reply_headers(). All else is left to them. On a device whose threads run in lockstep this
// keeps the common case free of the code for the others.
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

struct LoneGet {
  // Where the key lies in the frame.
  static constexpr uint32_t kKeyOffset =
      kEthernetHeaderSize + kIpv4HeaderSize + kUdpProtocolHeaderSize + kUdpHeaderSize + 4;

  uint32_t key_size = 0;  // 0: this is no such request
  bool has_udp_checksum = false;
};

namespace lone_detail {

inline constexpr uint32_t kIp = kEthernetHeaderSize;
inline constexpr uint32_t kUdp = kIp + kIpv4HeaderSize;
inline constexpr uint32_t kMemcached = kUdp + kUdpProtocolHeaderSize;
inline constexpr uint32_t kPayload = kMemcached + kUdpHeaderSize;
inline constexpr uint32_t kAddresses = kIp + kIpv4SourceOffset;
static_assert(kIp % 4 == 2 && kAddresses % 4 == 2 && LoneGet::kKeyOffset % 4 == 2);

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

// Whether a key that ends at `end` has no blank and no line end.
WC_HD inline bool is_one_word(const uint8_t* frame, uint32_t end) {
  uint32_t found = 0;
  for (uint32_t at = LoneGet::kKeyOffset - 2; at < end; at += 4) {
    uint32_t word = word32(frame, at);
    if (at < LoneGet::kKeyOffset) word |= 0xffff;
    if (at + 4 > end) word |= 0xffffffffu << (8 * (end - at));
    found |= zero_bytes(word ^ 0x20202020u) | zero_bytes(word ^ 0x0a0a0a0au);
  }
  return found == 0;
}

WC_HD inline uint32_t digits_of(uint32_t number) {
  uint32_t digits = 1;
  for (; number > 9; number /= 10) ++digits;
  return digits;
}

// Writes `number` with `digits` digits; returns the end.
WC_HD inline uint8_t* put_number(uint32_t number, uint32_t digits, uint8_t* out) {
  uint8_t* const end = out + digits;
  for (uint8_t* at = end; at != out; number /= 10) *--at = static_cast<uint8_t>('0' + number % 10);
  return end;
}

inline constexpr uint32_t kHitText = 6 + 1 + 1 + 2 + 2 + 5;  // "VALUE ", blanks, CRLFs, "END\r\n"
inline constexpr uint32_t kMissText = 5;

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

// Copies a key to `out`, and the byte behind one of odd size.
WC_HD inline void put_key(const uint8_t* frame, uint32_t size, uint8_t* out) {
  for (uint32_t at = 0; at < size; at += 16) {
    uint16_t words[8];
    WC_UNROLL
    for (uint32_t i = 0; i < 8; ++i) {
      words[i] = at + 2 * i < size ? word16(frame, LoneGet::kKeyOffset + at + 2 * i) : uint16_t{0};
    }
    WC_UNROLL
    for (uint32_t i = 0; i < 8; ++i) {
      if (at + 2 * i < size) put16(out, at + 2 * i, words[i]);
    }
  }
}

}  // namespace lone_detail

// Reads a frame of `size` bytes. REQUIRES: `frame` is a multiple of 4, and can be read up to the
// next one behind its end.
WC_HD inline LoneGet parse_lone_get(const uint8_t* frame, uint32_t size, uint16_t udp_port) {
  using namespace lone_detail;
  if (size < LoneGet::kKeyOffset + 3 || !has_usual_headers(frame, size, udp_port)) return {};
  const uint32_t udp_size = big16(word16(frame, kUdp + kUdpLengthOffset));
  const uint32_t end = kUdp + udp_size;
  if (end < LoneGet::kKeyOffset + 3 || end > LoneGet::kKeyOffset + kKeySizeMax + 2) return {};
  const bool get = word16(frame, kPayload) == ('g' | 'e' << 8) &&
                   word16(frame, kPayload + 2) == ('t' | ' ' << 8);
  if (!get || frame[end - 2] != '\r' || frame[end - 1] != '\n') return {};
  if (!is_one_word(frame, end - 2)) return {};
  const bool has_checksum = word16(frame, kUdp + kUdpChecksumOffset) != 0;
  if (has_checksum && checksum_fold(udp_sum(frame, udp_size)) != 0xffff) return {};
  return {end - 2 - LoneGet::kKeyOffset, has_checksum};
}

// Bytes of the reply frame to a hit.
WC_HD inline uint32_t lone_hit_size(const LoneGet& request, uint32_t client_flags,
                                    uint32_t value_size) {
  using namespace lone_detail;
  return kPayload + kHitText + request.key_size + digits_of(client_flags) + digits_of(value_size) +
         value_size;
}

// Writes the reply frame to a hit, its value left out; returns the place of that. REQUIRES: `frame`
// is what `request` was read from; room for `size` bytes, which are lone_hit_size(), at `out`, a
// multiple of 4.
WC_HD inline uint8_t* compose_lone_hit(const uint8_t* frame, const LoneGet& request,
                                       uint32_t client_flags, uint32_t value_size, uint32_t size,
                                       uint8_t* out) {
  using namespace lone_detail;
  put_headers(frame, size, out);
  put16(out, kPayload, 'V' | 'A' << 8);
  put16(out, kPayload + 2, 'L' | 'U' << 8);
  put16(out, kPayload + 4, 'E' | ' ' << 8);
  uint8_t* const key = out + kPayload + 6;
  put_key(frame, request.key_size, key);
  uint8_t* at = key + request.key_size;
  *at++ = ' ';
  at = put_number(client_flags, digits_of(client_flags), at);
  *at++ = ' ';
  at = put_number(value_size, digits_of(value_size), at);
  *at++ = '\r';
  *at++ = '\n';
  (void)put(at + value_size, "\r\nEND\r\n");
  return at;
}

// Writes the reply frame to a miss, ready to be sent; returns its bytes, padding included.
// REQUIRES: as above, and room for kEthernetFrameMin bytes.
WC_HD inline uint32_t compose_lone_miss(const uint8_t* frame, const LoneGet& request,
                                        uint8_t* out) {
  using namespace lone_detail;
  constexpr uint32_t kSize = kPayload + kMissText;
  put_headers(frame, kSize, out);
  (void)put(out + kPayload, "END\r\n");
  for (uint32_t at = kSize; at < kEthernetFrameMin; ++at) out[at] = 0;
  if (request.has_udp_checksum) {
    put16(out, kUdp + kUdpChecksumOffset, udp_checksum(udp_sum(out, kSize - kUdp)));
  }
  return kEthernetFrameMin;
}

// The UDP checksum of a hit, when its value is in place. REQUIRES: `out` can be read up to the next
// multiple of 4 behind its end.
WC_HD inline void finish_lone_hit(const LoneGet& request, uint32_t size, uint8_t* out) {
  using namespace lone_detail;
  if (!request.has_udp_checksum) return;
  put16(out, kUdp + kUdpChecksumOffset, udp_checksum(udp_sum(out, size - kUdp)));
}

}  // namespace warpcache::wire
