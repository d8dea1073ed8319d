// SPDX-License-Identifier: Apache-2.0
//
// The single-key fast path as get.h and set.h, for the host: the same frames are taken and the
// replies have the same bytes, but the fields are read and written with unaligned words of 8 bytes
// and blocks of 16, and checksums of headers and short texts are summed in registers. Nothing
// beyond a frame is read, and frames may lie anywhere. A device runs get.h and set.h, whose words
// are aligned.
#pragma once

#include "net/wide_checksum.h"
#include "protocol/single_key/get.h"
#include "protocol/single_key/set.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

#if !defined(__CUDA_ARCH__)  // a device has no use for it, nor for what it calls
namespace warpcache::protocol::wide {

using single_key::big16;
using single_key::kAddresses;
using single_key::kIp;
using single_key::kKey;
using single_key::kMemcached;
using single_key::kPayload;
using single_key::kUdp;

namespace detail {

inline uint64_t load64(const uint8_t* frame, uint32_t at) { return load_as<uint64_t>(frame + at); }
inline uint32_t load32(const uint8_t* frame, uint32_t at) { return load_as<uint32_t>(frame + at); }
inline uint16_t load16(const uint8_t* frame, uint32_t at) { return load_as<uint16_t>(frame + at); }

using net::wide::add;
using net::wide::add_range;
using net::wide::fold;
using net::wide::udp_checksum;

#if WC_MEM_SSE2
// The blanks and line feeds among 16 bytes, as a bit mask.
inline uint32_t delimiters(const uint8_t* at) {
  const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i found = _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8(' ')),
                                     _mm_cmpeq_epi8(block, _mm_set1_epi8('\n')));
  return static_cast<uint32_t>(_mm_movemask_epi8(found));
}
#else
inline uint32_t delimiters(const uint8_t* at) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < 16; ++i) found |= uint32_t{at[i] == ' ' || at[i] == '\n'} << i;
  return found;
}
#endif

// The offset of the first blank or line feed in [kKey, end); `end` if there is none. REQUIRES:
// `end` is at least kKey + 3.
inline uint32_t first_delimiter(const uint8_t* frame, uint32_t end) {
  for (uint32_t at = kKey; at + 16 < end; at += 16) {
    const uint32_t found = delimiters(frame + at);
    if (found != 0) return at + lowest_bit(found);
  }
  // The last 16 bytes, without those before the key.
  const uint32_t at = end - 16;
  const uint32_t before = at < kKey ? kKey - at : 0;
  const uint32_t found = delimiters(frame + at) >> before << before;
  return found != 0 ? at + lowest_bit(found) : end;
}

// The first eight bytes of a text, the rest zeros.
template <uint32_t kSize>
inline uint64_t word_of(const char (&text)[kSize]) {
  static_assert(kSize - 1 <= 8);
  uint64_t word = 0;
  __builtin_memcpy(&word, text, kSize - 1);
  return word;
}

// Writes the headers of a reply of `size` bytes, memcached's included, without the UDP checksum.
// Returns the sum of what the UDP checksum covers of them.
inline uint64_t put_headers(const uint8_t* frame, uint32_t size, uint8_t* out) {
  const uint64_t first = load64(frame, 0);
  const uint64_t sender = first >> 48 | uint64_t{load32(frame, 8)} << 16;
  store_as(out, sender | first << 48);
  store_as(out + 8, static_cast<uint32_t>(first >> 16));
  const uint32_t total = big16(size - kIp);
  store_as(out + net::kEtherTypeOffset,
           uint64_t{big16(net::kEtherTypeIpv4) | uint32_t{0x45} << 16} | uint64_t{total} << 32);
  constexpr uint32_t kFlags = big16(net::kIpv4DontFragment);
  constexpr uint32_t kProtocol = net::kReplyHopLimit | uint32_t{net::kIpProtocolUdp} << 8;
  const uint64_t addresses = load64(frame, kAddresses);
  const auto checksum =
      static_cast<uint16_t>(~fold(add(addresses, uint64_t{0x45} + kFlags + kProtocol + total)));
  store_as(out + kIp + net::kIpv4FragmentOffset,
           uint64_t{kFlags | kProtocol << 16} | uint64_t{checksum} << 32);
  store_as(out + kAddresses, addresses >> 32 | addresses << 32);
  const uint32_t ports = load32(frame, kUdp);
  const uint32_t udp_size = big16(size - kUdp);
  const uint64_t udp = uint64_t{ports >> 16 | ports << 16} | uint64_t{udp_size} << 32;
  store_as(out + kUdp, udp);
  // The request's number, datagram 0 of 1.
  const uint64_t memcached = load16(frame, kMemcached) | uint64_t{big16(1)} << 32;
  store_as(out + kMemcached, memcached);
  const uint64_t pseudo = uint64_t{big16(net::kIpProtocolUdp)} + udp_size;
  return add(addresses, udp, memcached, pseudo);
}
static_assert(kIp == 14 && kAddresses == 26 && kUdp == 34 && kMemcached == 42 && kPayload == 50);

inline void put_udp_checksum(uint64_t sum, uint8_t* out) {
  store_as(out + kUdp + net::kUdpChecksumOffset, udp_checksum(sum));
}

// A reply whose text fits into the smallest Ethernet frame.
template <uint32_t kSize>
inline void put_short_reply(const uint8_t* frame, const char (&text)[kSize], bool has_udp_checksum,
                            uint8_t* out) {
  static_assert(kPayload + 10 == net::kEthernetFrameMin);
  const uint64_t sum = put_headers(frame, kPayload + kSize - 1, out);
  const uint64_t word = word_of(text);
  store_as(out + kPayload, word);
  store_as(out + kPayload + 8, uint16_t{0});
  if (has_udp_checksum) put_udp_checksum(add(sum, word), out);
}

}  // namespace detail

inline constexpr uint32_t kGetVerb = 'g' | 'e' << 8 | 't' << 16 | ' ' << 24;
inline constexpr uint32_t kSetVerb = 's' | 'e' << 8 | 't' << 16 | ' ' << 24;

// What a frame says up to its key.
struct Start {
  uint32_t verb = 0;  // four bytes; 0: the headers are not the usual ones, or faulty
  uint32_t end = 0;   // of the datagram: an offset in the frame, at least kKey + 3
  bool has_udp_checksum = false;
};

// Reads and verifies the headers of a frame of `size` bytes, and verifies the checksums.
__attribute__((always_inline)) inline Start parse_start(const uint8_t* frame, uint32_t size,
                                                        uint16_t udp_port) {
  using namespace detail;  // NOLINT(google-build-using-namespace)
  if (size < kKey + 3) return {};
  constexpr uint64_t kToGroups = 1 | uint64_t{1} << (8 * net::kMacAddressSize);
  uint64_t differs = load64(frame, 0) & kToGroups;
  differs |=
      (load32(frame, net::kEtherTypeOffset) ^ (big16(net::kEtherTypeIpv4) | uint32_t{0x45} << 16)) &
      0xffffff;
  constexpr uint32_t kFragment = big16(net::kIpv4FragmentMask);
  differs |= (load32(frame, kIp + net::kIpv4FragmentOffset) ^ uint32_t{net::kIpProtocolUdp} << 24) &
             (0xff000000u | kFragment);
  static_assert(net::kIpv4ProtocolOffset == net::kIpv4FragmentOffset + 3);
  differs |= load16(frame, kUdp + net::kUdpDestinationOffset) ^ big16(udp_port);
  differs |= load16(frame, kMemcached + 4) ^ big16(1);
  const uint64_t ip_sum = add(load64(frame, kIp), load64(frame, kIp + 8), load32(frame, kIp + 16));
  differs |= fold(ip_sum) ^ 0xffffu;
  const uint64_t addresses = load64(frame, kAddresses);
  const uint32_t total = load_big16(frame + kIp + net::kIpv4LengthOffset);
  const uint32_t udp_size = load_big16(frame + kUdp + net::kUdpLengthOffset);
  if (differs != 0 || total > size - kIp || udp_size + net::kIpv4HeaderSize > total ||
      !single_key::is_host(static_cast<uint8_t>(addresses)) ||
      !single_key::is_host(static_cast<uint8_t>(addresses >> 32)) || load16(frame, kUdp) == 0) {
    return {};
  }
  const uint32_t end = kUdp + udp_size;
  if (end < kKey + 3) return {};
  const bool has_udp_checksum = load16(frame, kUdp + net::kUdpChecksumOffset) != 0;
  if (has_udp_checksum) {
    const uint64_t pseudo = uint64_t{big16(net::kIpProtocolUdp)} + big16(udp_size);
    const uint64_t headers = add(pseudo, addresses, load64(frame, kUdp), load64(frame, kMemcached));
    if (fold(add_range(headers, frame + kPayload, frame + end)) != 0xffff) return {};
  }
  return {load32(frame, kPayload), end, has_udp_checksum};
}

// REQUIRES: `start` is of the frame, and its verb is kGetVerb.
inline SingleKeyGet parse_get(const uint8_t* frame, const Start& start) {
  const uint32_t end = start.end;
  if (end > kKey + kKeySizeMax + 2) return {};
  if (frame[end - 2] != '\r' || frame[end - 1] != '\n') return {};
  if (detail::first_delimiter(frame, end) != end - 1) return {};
  return {end - 2 - kKey, start.has_udp_checksum};
}

// REQUIRES: `start` is of the frame, and its verb is kSetVerb.
inline SingleKeySet parse_set(const uint8_t* frame, const Start& start) {
  const uint32_t end = start.end;
  const uint32_t key_end = detail::first_delimiter(frame, end);
  if (key_end < kKey + 1 || key_end > kKey + kKeySizeMax || key_end == end) return {};
  if (frame[key_end] != ' ') return {};
  SingleKeySet request;
  if (!single_key::read_after_key(frame, end, key_end, &request)) return {};
  request.key_size = key_end - kKey;
  request.has_udp_checksum = start.has_udp_checksum;
  return request;
}

// What a hit shows between key and value: " <flags> <bytes>\r\n".
struct FlagsAndSize {
  __attribute__((always_inline)) FlagsAndSize(uint32_t client_flags, uint32_t value_size) {
    if (WC_LIKELY(client_flags < 10 && value_size < 1000)) {
      const uint32_t number = number_detail::kSmallNumbers.text[value_size];
      const uint32_t digits = number >> 24;
      const uint64_t word = uint64_t{' ' | ('0' + client_flags) << 8 | uint32_t{' '} << 16} |
                            uint64_t{number & 0xffffff} << 24;
      store_as(text, word | uint64_t{'\r' | '\n' << 8} << (24 + 8 * digits));
      size = 5 + digits;
      return;
    }
    store_as(text, uint64_t{0});  // put_hit() copies eight bytes, also where they are fewer
    uint8_t* at = text;
    *at++ = ' ';
    at = format_u64(client_flags, at);
    *at++ = ' ';
    at = put(format_u64(value_size, at), "\r\n");
    size = static_cast<uint32_t>(at - text);
  }

  uint32_t size;  // bytes, at least 6
  uint8_t text[4 + 2 * kDigitsOfU64Max];
};

// As single_key_hit_size().
inline uint32_t hit_size(const SingleKeyGet& request, const FlagsAndSize& numbers,
                         uint32_t value_size) {
  return kPayload + 6 + request.key_size + numbers.size + value_size + 7;
}

// Writes the complete reply frame to a hit. REQUIRES: `request` was parsed from `frame`; `numbers`
// are of the item; `size` is hit_size(); `out` has `size` bytes and does not overlap the frame.
__attribute__((always_inline)) inline void put_hit(const uint8_t* frame,
                                                   const SingleKeyGet& request,
                                                   const FlagsAndSize& numbers, Bytes value,
                                                   uint32_t size, uint8_t* out) {
  using namespace detail;  // NOLINT(google-build-using-namespace)
  const uint64_t sum = put_headers(frame, size, out);
  store_as(out + kPayload, word_of("VALUE "));
  uint8_t* at = out + kPayload + 6;
  at = put_short(at, {frame + kKey, request.key_size});
  // Eight bytes, the last of which the value or the end of the text overwrites; more are rare.
  store_as(at, load_as<uint64_t>(numbers.text));
  if (WC_UNLIKELY(numbers.size > 8)) mem_copy_short(at, numbers.text, numbers.size);
  at = put_often_short(at + numbers.size, value);
  (void)put(at, "\r\nEND\r\n");
  if (request.has_udp_checksum) put_udp_checksum(add_range(sum, out + kPayload, out + size), out);
}

// Write the complete reply frames to a miss, and to a set that took effect. REQUIRES: the request
// was parsed from `frame`; `out` has kEthernetFrameMin bytes and does not overlap the frame.
inline void put_miss(const uint8_t* frame, const SingleKeyGet& request, uint8_t* out) {
  detail::put_short_reply(frame, "END\r\n", request.has_udp_checksum, out);
}
inline void put_stored(const uint8_t* frame, const SingleKeySet& request, uint8_t* out) {
  detail::put_short_reply(frame, "STORED\r\n", request.has_udp_checksum, out);
}

}  // namespace warpcache::protocol::wide

#endif
