// SPDX-License-Identifier: Apache-2.0
//
// The general path's result for a frame, for tests of the single-key fast path.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "net/packet.h"
#include "net/testing/packets.h"
#include "protocol/compose/compose.h"
#include "protocol/framing/frame.h"
#include "protocol/parse/parse.h"

namespace warpcache::protocol::testing {

using net::testing::frame_of;
using net::testing::FrameForm;
using net::testing::kMendAll;
using net::testing::kTestPort;
using net::testing::mend;

inline const std::string kHeader("\x12\x34\0\0\0\1\0\0", 8);

// A frame at an address that is a multiple of 4, as on a device.
struct Aligned {
  explicit Aligned(const std::string& bytes) : words(bytes.size() / 4 + 1), size(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), data());
  }
  uint8_t* data() { return reinterpret_cast<uint8_t*>(words.data()); }
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(words.data()); }
  uint32_t bytes() const { return static_cast<uint32_t>(size); }

  std::vector<uint32_t> words;
  size_t size;
};

// What the general path makes of a frame: its only request.
struct GeneralPath {
  bool single = false;
  net::Packet packet;
  UdpHeader header;
  Request request;
};

inline GeneralPath general_path(Aligned& frame) {
  GeneralPath path;
  const Bytes bytes = {frame.data(), frame.size};
  if (net::parse_packet(bytes, kTestPort, path.packet) != net::PacketVerdict::kRequest) return path;
  const Bytes datagram = {frame.data() + path.packet.payload_offset, path.packet.payload_size};
  if (parse_udp_header(datagram, path.header) != UdpVerdict::kRequest) return path;
  const uint32_t offset = path.packet.payload_offset + kUdpHeaderSize;
  FrameState state = {};
  FrameLimits limits = {};
  limits.item_size_max = 1 << 20;
  limits.inline_body_max = UINT32_MAX;  // as on a device
  Frame frames[2];
  const FrameResult result =
      frame_datagram(state, limits, datagram.from(kUdpHeaderSize), offset, 0, frames, 2);
  if (result.count != 1 || result.end != FrameEnd::kClose) return path;
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
