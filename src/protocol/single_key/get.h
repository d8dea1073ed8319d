// SPDX-License-Identifier: Apache-2.0
//
// The single-key fast path for reads: "get <key>" in a frame as packet.h describes. It accepts a
// part of what parse_packet(), parse_udp_header() and frame_datagram() accept, with the same
// meaning, and its reply has the same bytes as that of compose_reply() and compose_reply_headers().
// All other frames take the general path. The lanes of a warp run the same code, so the common case
// gains from code without branches for the other cases.
#pragma once

#include "protocol/single_key/packet.h"

namespace warpcache::protocol {

struct SingleKeyGet {
  uint32_t key_size = 0;  // 0: not a request of this form
  bool has_udp_checksum = false;
};

namespace single_key {

// Whether the key that ends at `end` has no blank and no line end.
WC_HD inline bool is_one_word(const uint8_t* frame, uint32_t end) {
  uint32_t found = 0;
  for (uint32_t at = kKey - 2; at < end; at += 4) {
    uint32_t word = word32(frame, at);
    if (at < kKey) word |= 0xffff;
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

// Copies a key to `out` in words of 4 bytes: also copies what follows the key up to a multiple
// of 4. REQUIRES: `out` is a multiple of 4.
WC_HD inline void put_key(const uint8_t* frame, uint32_t size, uint8_t* out) {
  uint32_t half = word32(frame, kKey - 2);
  for (uint32_t at = 0; at < size; at += 4) {
    const uint32_t next = word32(frame, kKey + 2 + at);
    put32(out, at, half >> 16 | next << 16);
    half = next;
  }
}

// Parses a frame of `size` bytes. REQUIRES: `frame` is a multiple of 4; the memory up to the next
// multiple of 4 after its end can be read.
WC_HD inline SingleKeyGet parse_single_key_get(const uint8_t* frame, uint32_t size,
                                               uint16_t udp_port) {
  if (size < kKey + 3) return {};
  const Head head = load_head(frame);
  const bool get =
      head.half(kPayload) == ('g' | 'e' << 8) && head.half(kPayload + 2) == ('t' | ' ' << 8);
  if (!get || !has_usual_headers(head, size, udp_port)) return {};
  const uint32_t udp_size = big16(head.half(kUdp + net::kUdpLengthOffset));
  const uint32_t end = kUdp + udp_size;
  if (end < kKey + 3 || end > kKey + kKeySizeMax + 2) return {};
  if (frame[end - 2] != '\r' || frame[end - 1] != '\n') return {};
  if (!is_one_word(frame, end - 2)) return {};
  if (has_wrong_checksum(head, frame, udp_size)) return {};
  return {end - 2 - kKey, head.half(kUdp + net::kUdpChecksumOffset) != 0};
}

// Size in bytes of the reply frame to a hit.
WC_HD inline uint32_t single_key_hit_size(const SingleKeyGet& request, uint32_t client_flags,
                                          uint32_t value_size) {
  return kPayload + kHitText + request.key_size + digits_of(client_flags) + digits_of(value_size) +
         value_size;
}

// Writes the reply frame to a hit without the value; returns where the value goes. REQUIRES:
// `request` was parsed from `frame`; `size` is single_key_hit_size(); `out` is a multiple of 4 and
// has `size` bytes.
WC_HD inline uint8_t* compose_single_key_hit(const uint8_t* frame, const SingleKeyGet& request,
                                             uint32_t client_flags, uint32_t value_size,
                                             uint32_t size, uint8_t* out) {
  put_headers(frame, size, out);
  put16(out, kPayload, 'V' | 'A' << 8);
  put32(out, kPayload + 2, 'L' | 'U' << 8 | 'E' << 16 | ' ' << 24);
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

// Writes the complete reply frame to a miss; returns its size, padding included. REQUIRES: as
// above; `out` has kEthernetFrameMin bytes.
WC_HD inline uint32_t compose_single_key_miss(const uint8_t* frame, const SingleKeyGet& request,
                                              uint8_t* out) {
  compose_short_reply(frame, "END\r\n", request.has_udp_checksum, out);
  return net::kEthernetFrameMin;
}

// Writes the UDP checksum of a hit when its value is in place. REQUIRES: the memory up to the next
// multiple of 4 after the end of `out` can be read.
WC_HD inline void finish_single_key_hit(const SingleKeyGet& request, uint32_t size, uint8_t* out) {
  if (!request.has_udp_checksum) return;
  put16(out, kUdp + net::kUdpChecksumOffset, net::udp_checksum(udp_sum(out, size - kUdp)));
}

}  // namespace single_key

using single_key::compose_single_key_hit;
using single_key::compose_single_key_miss;
using single_key::finish_single_key_hit;
using single_key::parse_single_key_get;
using single_key::single_key_hit_size;

}  // namespace warpcache::protocol
