// SPDX-License-Identifier: Apache-2.0
//
// The single-key fast path for writes, as get.h for reads: "set <key> <flags> 0 <bytes>" with its
// value in a frame as packet.h describes, one blank between two words, no noreply.
#pragma once

#include "protocol/single_key/packet.h"

namespace warpcache::protocol {

struct SingleKeySet {
  uint32_t key_size = 0;  // 0: not a request of this form
  uint32_t client_flags = 0;
  uint32_t value_offset = 0;  // in the frame
  uint32_t value_size = 0;
  bool has_udp_checksum = false;
};

namespace single_key {

inline constexpr uint32_t kNoBlank = 0;

// The offset of the first blank in [kKey, end); kNoBlank if there is none before a line end.
WC_HD inline uint32_t first_blank(const uint8_t* frame, uint32_t end) {
  for (uint32_t at = kKey - 2; at < end; at += 4) {
    uint32_t word = word32(frame, at);
    if (at < kKey) word |= 0xffff;
    const uint32_t blanks = zero_bytes(word ^ 0x20202020u);
    const uint32_t lines = zero_bytes(word ^ 0x0a0a0a0au);
    if ((blanks | lines) == 0) continue;
    const uint32_t lowest = (blanks | lines) & ~((blanks | lines) - 1);
    if ((lowest & lines) != 0) return kNoBlank;
    uint32_t byte = 0;
    while (lowest >> (8 * byte + 7) != 1) ++byte;
    return at + byte < end ? at + byte : kNoBlank;
  }
  return kNoBlank;
}

// Reads a decimal number of up to nine digits at `at`, followed by `next`, and moves `at` after
// both. False: there is no such number.
WC_HD inline bool take_number(const uint8_t* frame, uint32_t end, char next, uint32_t* at,
                              uint32_t* number) {
  constexpr uint32_t kDigitsMax = 9;
  uint32_t value = 0;
  uint32_t digits = 0;
  for (; digits <= kDigitsMax && *at + digits < end; ++digits) {
    const uint32_t digit = frame[*at + digits] - uint32_t{'0'};
    if (digit > 9) break;
    value = value * 10 + digit;
  }
  if (digits == 0 || digits > kDigitsMax || *at + digits >= end) return false;
  if (frame[*at + digits] != static_cast<uint8_t>(next)) return false;
  *at += digits + 1;
  *number = value;
  return true;
}

// Reads flags, a time of 0 and the size after the blank at `key_end`, and the value, which ends
// the datagram at `end`. False: they have another form.
WC_HD inline bool read_after_key(const uint8_t* frame, uint32_t end, uint32_t key_end,
                                 SingleKeySet* request) {
  uint32_t at = key_end + 1;
  uint32_t exptime = 0;
  if (!take_number(frame, end, ' ', &at, &request->client_flags) ||
      !take_number(frame, end, ' ', &at, &exptime) || exptime != 0 ||
      !take_number(frame, end, '\r', &at, &request->value_size) || at == end || frame[at] != '\n') {
    return false;
  }
  request->value_offset = at + 1;
  if (request->value_size > end || request->value_offset + request->value_size + 2 != end) {
    return false;
  }
  return frame[end - 2] == '\r' && frame[end - 1] == '\n';
}

// Parses a frame of `size` bytes. REQUIRES: as for parse_single_key_get().
WC_HD inline SingleKeySet parse_single_key_set(const uint8_t* frame, uint32_t size,
                                               uint16_t udp_port) {
  constexpr uint32_t kShortest = kKey + sizeof("k 0 0 0\r\n\r\n") - 1;
  if (size < kShortest) return {};
  const Head head = load_head(frame);
  const bool set =
      head.half(kPayload) == ('s' | 'e' << 8) && head.half(kPayload + 2) == ('t' | ' ' << 8);
  if (!set || !has_usual_headers(head, size, udp_port)) return {};
  const uint32_t udp_size = big16(head.half(kUdp + net::kUdpLengthOffset));
  const uint32_t end = kUdp + udp_size;
  if (end < kShortest) return {};
  const uint32_t key_end = first_blank(frame, end);
  if (key_end < kKey + 1 || key_end > kKey + kKeySizeMax) return {};
  SingleKeySet request;
  if (!read_after_key(frame, end, key_end, &request)) return {};
  if (has_wrong_checksum(head, frame, udp_size)) return {};
  request.key_size = key_end - kKey;
  request.has_udp_checksum = head.half(kUdp + net::kUdpChecksumOffset) != 0;
  return request;
}

// Writes the complete reply frame to a set that took effect; returns its size, padding included.
// REQUIRES: `out` is a multiple of 4 and has kEthernetFrameMin bytes.
WC_HD inline uint32_t compose_single_key_stored(const uint8_t* frame, const SingleKeySet& request,
                                                uint8_t* out) {
  compose_short_reply(frame, "STORED\r\n", request.has_udp_checksum, out);
  return net::kEthernetFrameMin;
}

}  // namespace single_key

using single_key::compose_single_key_stored;
using single_key::parse_single_key_set;

}  // namespace warpcache::protocol
