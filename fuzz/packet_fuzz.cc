// SPDX-License-Identifier: Apache-2.0
//
// Ethernet frames: headers, lengths, checksums, and the frames that answer them. The last bytes of
// the input choose the reply's size. The mutator divides frames between their headers and usually
// corrects lengths and checksums; otherwise hardly any frame would pass these checks.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "fuzz/frames.h"
#include "fuzz/mutate.h"
#include "fuzz/single_key.h"
#include "net/packet.h"
#include "net/testing/packets.h"
#include "protocol/framing/udp_frame.h"

namespace {

using namespace warpcache;
using net::testing::kTestPort;

constexpr size_t kReplySizeBytes = 2;  // taken from the end of the input

void check_bounds(const net::Packet& packet, const std::string& frame) {
  WC_ASSERT(packet.vlan_count <= net::kVlanTagsMax);
  WC_ASSERT(packet.l3_offset == net::ethernet_header_size(packet.vlan_count));
  WC_ASSERT(packet.l4_offset >= packet.l3_offset + net::ip_reply_header_size(packet.ip_version));
  WC_ASSERT(packet.payload_offset == packet.l4_offset + net::kUdpProtocolHeaderSize);
  WC_ASSERT(size_t{packet.payload_offset} + packet.payload_size <= frame.size());
  const uint16_t checksum = net::testing::get16(frame, packet.l4_offset + 6u);
  WC_ASSERT(packet.has_udp_checksum == (checksum != 0));
  WC_ASSERT(checksum == 0 || checksum == net::testing::udp_checksum_of(frame));
}

// Checks that the client can accept the reply frame.
void check_reply(const uint8_t* frame, const net::Packet& packet, uint32_t size) {
  const uint32_t frame_size = net::reply_frame_size(packet, size);
  const uint32_t headers_size = net::reply_headers_size(packet);
  WC_ASSERT(headers_size <= net::kReplyHeadersMax);
  const auto reply = std::make_unique<uint8_t[]>(frame_size);
  net::compose_reply_headers(frame, packet, size, reply.get());
  std::memset(reply.get() + headers_size, static_cast<int>(size), size);
  net::finish_udp_checksum(packet, size, reply.get());
  WC_ASSERT(net::pad_frame(reply.get(), headers_size + size) == frame_size);
  const uint16_t client_port = load_big16(frame + packet.l4_offset);
  net::Packet back;
  const net::PacketVerdict verdict =
      net::parse_packet({reply.get(), frame_size}, client_port, back);
  WC_ASSERT(verdict == net::PacketVerdict::kRequest);
  WC_ASSERT(back.payload_offset == headers_size && back.payload_size == size);
  WC_ASSERT(back.vlan_count == packet.vlan_count && back.ip_version == packet.ip_version);
  WC_ASSERT(back.has_udp_checksum == packet.has_udp_checksum);
  WC_ASSERT(load_big16(reply.get() + back.l4_offset) == kTestPort);
}

// Makes one change to the parts of the frame.
void mutate_parts(std::string& frame, std::mt19937& random) {
  const size_t l3 = std::min(net::testing::l3_offset_of(frame), frame.size());
  const size_t l4 = std::min(net::testing::l4_offset_of(frame), frame.size());
  const size_t payload = std::min(l4 + net::kUdpProtocolHeaderSize, frame.size());
  const bool ipv6 = l3 + net::kIpv6HeaderSize <= frame.size() && (frame[l3] & 0xf0) == 0x60;
  switch (random() % 7) {
    case 0:
      frame.insert(std::min<size_t>(net::kEtherTypeOffset, frame.size()),
                   std::string(random() % 2 == 0 ? "\x81\x00\x00\x05" : "\x88\xa8\x20\x06", 4));
      break;
    case 1:
      if (l3 >= 18) frame.erase(net::kEtherTypeOffset, net::kVlanTagSize);
      break;
    case 2:
      frame.insert(l4, std::string(4, '\x01'));
      if (l3 < frame.size()) ++frame[l3];
      break;
    case 3:
      frame.resize(payload + random() % (frame.size() - payload + 1));
      break;
    case 4: {  // an IPv6 extension header before the others
      if (!ipv6) break;
      const uint8_t types[] = {net::kIpv6HopByHop, net::kIpv6Routing, net::kIpv6DestinationOptions,
                               net::kIpv6Fragment};
      const auto made =
          net::testing::extension_of(types[random() % 4], static_cast<uint8_t>(1 + random() % 3));
      const char next =
          std::exchange(frame[l3 + net::kIpv6NextHeaderOffset], static_cast<char>(made.type));
      frame.insert(l3 + net::kIpv6HeaderSize, next + made.rest);
      break;
    }
    case 5:
      frame += std::string(1 + random() % 32, static_cast<char>(random()));
      break;
    default: {
      std::string part = frame.substr(payload);
      const size_t size = part.size();
      part.resize(size + 64);
      part.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(part.data()), size, part.size()));
      frame.replace(payload, std::string::npos, part);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Steering steering(data, size);
  const uint32_t reply_size = steering.next() << 8 | steering.next();
  const std::string frame = steering.rest();
  protocol::testing::HeapCopy copy(frame);
  net::Packet packet;
  const bool is_packet =
      net::parse_packet(copy.bytes(), kTestPort, packet) == net::PacketVerdict::kRequest;
  fuzz::check_single_key(frame, reply_size, std::string(reply_size % 1300, 'v'), 1 << 20);
  if (!is_packet) return 0;
  check_bounds(packet, frame);
  check_reply(copy.data(), packet, std::min(reply_size, net::kReplyUdpPayloadMax));
  protocol::UdpHeader header;
  const Bytes payload = copy.bytes().sub(packet.payload_offset, packet.payload_size);
  if (protocol::parse_udp_header(payload, header) != protocol::UdpVerdict::kRequest) return 0;
  fuzz::run_whole(protocol::testing::text_of(payload.from(protocol::kUdpHeaderSize)),
                  protocol::testing::default_limits(), true, {});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned int seed) {
  std::mt19937 random(seed);
  if (size <= kReplySizeBytes || random() % 4 == 0) return LLVMFuzzerMutate(data, size, size_max);
  std::string frame(reinterpret_cast<const char*>(data), size);
  const std::string tail = frame.substr(size - kReplySizeBytes);
  frame.resize(size - kReplySizeBytes);
  if (random() % 2 == 0) {
    frame.resize(frame.size() + 16);
    frame.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(frame.data()), frame.size() - 16,
                                  frame.size()));
  } else {
    mutate_parts(frame, random);
  }
  frame.resize(std::min(frame.size(), size_max - kReplySizeBytes));
  const size_t padding = random() % 4 == 0 ? random() % 8 : 0;
  net::testing::mend(
      frame,
      random() % 4 == 0 ? static_cast<uint32_t>(random() % 16) : uint32_t{net::testing::kMendAll},
      padding);
  frame += tail;
  std::memcpy(data, frame.data(), frame.size());
  return frame.size();
}
