// SPDX-License-Identifier: Apache-2.0
//
// Compares the single-key fast path with the general path, frame by frame: for tests and fuzz
// targets.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "net/packet.h"
#include "net/testing/packets.h"
#include "protocol/compose/compose.h"
#include "protocol/framing/frame.h"
#include "protocol/framing/item_size.h"
#include "protocol/parse/parse.h"
#include "protocol/single_key/get.h"
#include "protocol/single_key/set.h"
#include "protocol/single_key/wide.h"

namespace warpcache::protocol::testing {

using net::testing::frame_of;
using net::testing::FrameForm;
using net::testing::kMendAll;
using net::testing::kTestPort;
using net::testing::mend;

inline const std::string kHeader("\x12\x34\0\0\0\1\0\0", 8);

// A frame at an address that is a multiple of 4, as on a device. Nothing after the next multiple of
// 4 after its end may be read.
struct Aligned {
  explicit Aligned(const std::string& bytes) : words((bytes.size() + 3) / 4), size(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), data());
  }
  uint8_t* data() { return reinterpret_cast<uint8_t*>(words.data()); }
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(words.data()); }
  uint32_t bytes() const { return static_cast<uint32_t>(size); }

  std::vector<uint32_t> words;
  size_t size;
};

// Limits as in packets on a device.
inline FrameLimits packet_limits() { return {1 << 20, UINT32_MAX, true, kProtocolAuto}; }

// What the general path makes of a frame: its only request.
struct GeneralPath {
  bool single = false;
  net::Packet packet;
  UdpHeader header;
  Request request;
};

inline GeneralPath general_path(Aligned& frame, const FrameLimits& limits) {
  GeneralPath path;
  const Bytes bytes = {frame.data(), frame.size};
  if (net::parse_packet(bytes, kTestPort, path.packet) != net::PacketVerdict::kRequest) return path;
  const Bytes datagram = {frame.data() + path.packet.payload_offset, path.packet.payload_size};
  if (parse_udp_header(datagram, path.header) != UdpVerdict::kRequest) return path;
  const uint32_t offset = path.packet.payload_offset + kUdpHeaderSize;
  FrameState state = {};
  Frame frames[2];
  const FrameResult result =
      frame_datagram(state, limits, datagram.from(kUdpHeaderSize), offset, 0, frames, 2);
  if (result.count != 1 || result.end != FrameEnd::kClose) return path;
  if (result.consumed != datagram.size - kUdpHeaderSize) return path;
  parse_request(frames[0], frame.data(), path.request);
  path.single = true;
  return path;
}

inline std::string general_reply(const Aligned& frame, const GeneralPath& path,
                                 const Result& result) {
  std::string text(4096, '\xee');
  auto* const begin = reinterpret_cast<uint8_t*>(text.data());
  uint8_t* const payload = begin + net::reply_headers_size(path.packet) + kUdpHeaderSize;
  const uint8_t* const end =
      compose_reply(path.request, result, frame.data(), payload,
                    [&result](uint8_t* at) { return put(at, result.value); });
  const auto size = static_cast<uint32_t>(end - payload) + kUdpHeaderSize;
  net::compose_reply_headers(frame.data(), path.packet, size, begin);
  UdpHeader header = path.header;
  header.sequence = 0;
  header.count = 1;
  compose_udp_header(header, payload - kUdpHeaderSize);
  net::finish_udp_checksum(path.packet, size, begin);
  text.resize(net::pad_frame(begin, net::reply_headers_size(path.packet) + size));
  return text;
}

// Whether the fast path takes a frame, and where it then disagrees with the general path.
struct Comparison {
  bool taken = false;
  std::string difference;  // empty: nowhere

  void expect(bool same, const char* what) {
    if (!same) difference += std::string(difference.empty() ? "" : ", ") + what;
  }
};

// All that the general path must say of a request of the fast path besides its key and value: one
// message that is the whole datagram, without noreply, CAS id or expiry.
inline void expect_plain(const GeneralPath& path, Op op, uint32_t bits, Comparison& comparison) {
  const Request& request = path.request;
  comparison.expect(path.single, "no single request");
  if (!path.single) return;
  comparison.expect(request.op == op, "op");
  comparison.expect(request.protocol == Protocol::kText, "protocol");
  comparison.expect(request.status == Status::kOk, "status");
  comparison.expect((request.bits & ~uint32_t{kLastKey}) == bits, "bits");
  comparison.expect(request.exptime == 0, "expiry");
  comparison.expect(request.key_offset == kSingleKeyOffset, "key offset");
}

inline std::string fast_hit(const Aligned& frame, const SingleKeyGet& request,
                            const Result& result) {
  const uint32_t size = single_key_hit_size(request, result.client_flags, result.value_size);
  Aligned out(std::string(size, '\xee'));
  uint8_t* const value = compose_single_key_hit(frame.data(), request, result.client_flags,
                                                result.value_size, size, out.data());
  put(value, result.value);
  finish_single_key_hit(request, size, out.data());
  return {reinterpret_cast<const char*>(out.data()), size};
}

inline std::string fast_miss(const Aligned& frame, const SingleKeyGet& request) {
  Aligned out(std::string(net::kEthernetFrameMin, '\xee'));
  const uint32_t size = compose_single_key_miss(frame.data(), request, out.data());
  return {reinterpret_cast<const char*>(out.data()), size};
}

inline std::string fast_stored(const Aligned& frame, const SingleKeySet& request) {
  Aligned out(std::string(net::kEthernetFrameMin, '\xee'));
  const uint32_t size = compose_single_key_stored(frame.data(), request, out.data());
  return {reinterpret_cast<const char*>(out.data()), size};
}

// A frame at an odd address, for the forms of the host (wide.h). Nothing outside of it may be read
// or written.
struct Unaligned {
  explicit Unaligned(const std::string& text) : bytes(text.size() + 1) {
    std::copy(text.begin(), text.end(), data());
  }
  uint8_t* data() { return bytes.data() + 1; }
  const uint8_t* data() const { return bytes.data() + 1; }
  uint32_t size() const { return static_cast<uint32_t>(bytes.size() - 1); }
  std::string text() const { return {bytes.begin() + 1, bytes.end()}; }

  std::vector<uint8_t> bytes;
};

inline SingleKeyGet parse_wide_get(const Unaligned& frame) {
  const wide::Start start = wide::parse_start(frame.data(), frame.size(), kTestPort);
  return start.verb == wide::kGetVerb ? wide::parse_get(frame.data(), start) : SingleKeyGet{};
}

inline SingleKeySet parse_wide_set(const Unaligned& frame) {
  const wide::Start start = wide::parse_start(frame.data(), frame.size(), kTestPort);
  return start.verb == wide::kSetVerb ? wide::parse_set(frame.data(), start) : SingleKeySet{};
}

inline std::string wide_hit(const Unaligned& frame, const SingleKeyGet& request,
                            const Result& result) {
  const wide::FlagsAndSize numbers(result.client_flags, result.value_size);
  const uint32_t size = wide::hit_size(request, numbers, result.value_size);
  Unaligned out(std::string(size, '\xee'));
  wide::put_hit(frame.data(), request, numbers, result.value, size, out.data());
  return out.text();
}

inline std::string wide_miss(const Unaligned& frame, const SingleKeyGet& request) {
  Unaligned out(std::string(net::kEthernetFrameMin, '\xee'));
  wide::put_miss(frame.data(), request, out.data());
  return out.text();
}

inline std::string wide_stored(const Unaligned& frame, const SingleKeySet& request) {
  Unaligned out(std::string(net::kEthernetFrameMin, '\xee'));
  wide::put_stored(frame.data(), request, out.data());
  return out.text();
}

// Compares parse_single_key_get(), and the replies to a miss and to a hit on `value`.
inline Comparison compare_single_key_get(const std::string& bytes, uint32_t client_flags,
                                         const std::string& value) {
  Comparison comparison;
  const Aligned frame(bytes);
  const SingleKeyGet request = parse_single_key_get(frame.data(), frame.bytes(), kTestPort);
  comparison.taken = request.key_size != 0;
  const Unaligned odd(bytes);
  const SingleKeyGet other = parse_wide_get(odd);
  comparison.expect(other.key_size == request.key_size, "the host's form: taken, key size");
  comparison.expect(other.has_udp_checksum == request.has_udp_checksum, "the host's form");
  if (!comparison.taken) return comparison;
  Aligned copy(bytes);
  const GeneralPath path = general_path(copy, packet_limits());
  expect_plain(path, Op::kGet, kReturnValue, comparison);
  comparison.expect(path.request.key_size == request.key_size, "key size");
  if (!comparison.difference.empty()) return comparison;
  Result result = {};
  result.outcome = Outcome::kMiss;
  comparison.expect(fast_miss(frame, request) == general_reply(frame, path, result), "miss");
  comparison.expect(wide_miss(odd, request) == fast_miss(frame, request), "the host's miss");
  result.outcome = Outcome::kHit;
  result.client_flags = client_flags;
  result.value = {reinterpret_cast<const uint8_t*>(value.data()), value.size()};
  result.value_size = static_cast<uint32_t>(value.size());
  comparison.expect(fast_hit(frame, request, result) == general_reply(frame, path, result), "hit");
  comparison.expect(wide_hit(odd, request, result) == fast_hit(frame, request, result),
                    "the host's hit");
  return comparison;
}

// Compares parse_single_key_set() and the reply. Items above `item_size_max` bytes are not taken.
inline Comparison compare_single_key_set(const std::string& bytes,
                                         uint32_t item_size_max = 1 << 20) {
  Comparison comparison;
  const Aligned frame(bytes);
  const SingleKeySet request = parse_single_key_set(frame.data(), frame.bytes(), kTestPort);
  const Unaligned odd(bytes);
  const SingleKeySet other = parse_wide_set(odd);
  comparison.expect(other.key_size == request.key_size, "the host's form: taken, key size");
  if (request.key_size != 0) {
    comparison.expect(other.client_flags == request.client_flags &&
                          other.value_offset == request.value_offset &&
                          other.value_size == request.value_size &&
                          other.has_udp_checksum == request.has_udp_checksum,
                      "the host's form");
  }
  FrameLimits limits = packet_limits();
  limits.item_size_max = item_size_max;
  comparison.taken = request.key_size != 0 &&
                     item_fits(limits, request.key_size, request.client_flags, request.value_size);
  if (!comparison.taken) return comparison;
  Aligned copy(bytes);
  const GeneralPath path = general_path(copy, limits);
  expect_plain(path, Op::kSet, 0, comparison);
  comparison.expect(path.request.key_size == request.key_size, "key size");
  comparison.expect(path.request.client_flags == request.client_flags, "flags");
  comparison.expect(path.request.value_offset == request.value_offset, "value offset");
  comparison.expect(path.request.value_size == request.value_size, "value size");
  if (!comparison.difference.empty()) return comparison;
  Result result = {};
  result.outcome = Outcome::kStored;
  comparison.expect(fast_stored(frame, request) == general_reply(frame, path, result), "reply");
  comparison.expect(wide_stored(odd, request) == fast_stored(frame, request), "the host's reply");
  return comparison;
}

// Frames with `payload_of(random)` after memcached's header. Any byte may be changed, and checksums
// and lengths may be right or wrong.
template <typename PayloadOf>
std::string damaged_frame(std::mt19937_64& random, const PayloadOf& payload_of) {
  const auto below = [&random](uint64_t bound) { return random() % bound; };
  const char kBytes[] = {'\0', ' ',    '\r',   '\n',   '0',  'g',
                         'k',  '\x45', '\x11', '\xff', '\1', '\x7f'};
  FrameForm form;
  form.checksum = below(2) == 0;
  form.padding = std::string(below(3), 'p');
  std::string frame = frame_of(kHeader + payload_of(random), form);
  for (uint64_t changes = below(3); changes > 0; --changes) {
    const char byte = below(3) == 0 ? static_cast<char>(random()) : kBytes[below(sizeof kBytes)];
    frame[below(frame.size())] = byte;
  }
  mend(frame, below(2) == 0 ? uint32_t{kMendAll} : static_cast<uint32_t>(below(16)),
       form.padding.size());
  if (below(20) == 0) frame.resize(below(frame.size()) + 1);
  return frame;
}

}  // namespace warpcache::protocol::testing
