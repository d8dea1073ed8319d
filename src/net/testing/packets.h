// SPDX-License-Identifier: Apache-2.0
//
// For tests: makes and repairs Ethernet frames with a UDP datagram byte by byte, without any of the
// code that is tested.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace warpcache::net::testing {

inline constexpr uint16_t kTestPort = 11211;

// An IPv6 extension header.
struct Ipv6Extension {
  uint8_t type;
  std::string rest;  // after the byte that names the next header: its length in units, and the rest
};

struct FrameForm {
  bool ipv6 = false;
  std::vector<uint16_t> vlan_tags;  // EtherTypes of the tags, the outermost first
  uint16_t source_port = 40000;
  uint16_t destination_port = kTestPort;
  bool checksum = true;    // of UDP
  std::string ip_options;  // IPv4; a multiple of four bytes
  std::string padding;     // after the IP datagram
  std::vector<Ipv6Extension> extensions{};
};

// A header of `units` times eight bytes with options of padding, or a route that has ended.
inline Ipv6Extension extension_of(uint8_t type, uint8_t units = 1) {
  constexpr uint8_t kRouting = 43;
  std::string rest(units * size_t{8} - 1, '\0');
  rest[0] = static_cast<char>(units - 1);
  if (type != kRouting) {  // PadN, as long as one can be, and Pad1
    rest[1] = 1;
    rest[2] = static_cast<char>(std::min<size_t>(rest.size() - 3, 255));
  }
  return {type, rest};
}

inline uint8_t byte_at(const std::string& bytes, size_t at) {
  return static_cast<uint8_t>(bytes[at]);
}

inline uint16_t get16(const std::string& bytes, size_t at) {
  return static_cast<uint16_t>(byte_at(bytes, at) << 8 | byte_at(bytes, at + 1));
}

inline void set16(std::string& bytes, size_t at, uint64_t value) {
  bytes[at] = static_cast<char>(value >> 8);
  bytes[at + 1] = static_cast<char>(value);
}

// The checksum of RFC 1071, word by word. REQUIRES: `bytes` start at an even offset.
inline uint16_t slow_checksum(const std::string& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    sum += static_cast<uint32_t>(byte_at(bytes, i)) << (i % 2 == 0 ? 8 : 0);
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<uint16_t>(~sum);
}

enum Mend : uint32_t {
  kMendIpLength = 1u << 0,
  kMendUdpLength = 1u << 1,
  kMendIpChecksum = 1u << 2,
  kMendUdpChecksum = 1u << 3,
  kMendAll = 15,
};

// Where the IP header starts: after the VLAN tags, if the frame has any.
inline size_t l3_offset_of(const std::string& frame) {
  size_t at = 12;
  while (at + 6 <= frame.size() && (get16(frame, at) == 0x8100 || get16(frame, at) == 0x88a8)) {
    at += 4;
  }
  return at + 2;
}

inline size_t l4_offset_of(const std::string& frame) {
  const size_t l3 = l3_offset_of(frame);
  if (l3 >= frame.size()) return frame.size();
  if (byte_at(frame, l3) >> 4 != 6) return l3 + (byte_at(frame, l3) & 15u) * 4;
  size_t at = l3 + 40;
  uint8_t next = at <= frame.size() ? byte_at(frame, l3 + 6) : 17;
  while ((next == 0 || next == 43 || next == 60) && at + 2 <= frame.size()) {
    next = byte_at(frame, at);
    at += 8 * (byte_at(frame, at + 1) + size_t{1});
  }
  return at;
}

// The UDP checksum that belongs to the lengths in the frame's headers.
inline uint16_t udp_checksum_of(const std::string& frame) {
  const size_t l3 = l3_offset_of(frame);
  const size_t l4 = l4_offset_of(frame);
  const bool ipv6 = byte_at(frame, l3) >> 4 == 6;
  std::string covered = frame.substr(l4, std::max<size_t>(get16(frame, l4 + 4), 8));
  set16(covered, 6, 0);
  std::string pseudo = ipv6 ? frame.substr(l3 + 8, 32) : frame.substr(l3 + 12, 8);
  pseudo += {0, 17, 0, 0};
  set16(pseudo, pseudo.size() - 2, get16(frame, l4 + 4));
  const uint16_t checksum = slow_checksum(pseudo + covered);
  return checksum != 0 ? checksum : uint16_t{0xffff};
}

// Corrects the lengths and checksums that `what` names, where the frame is long enough to have
// them. Lengths reach to the frame's end, less `padding` bytes.
inline void mend(std::string& frame, uint32_t what, size_t padding = 0) {
  const size_t l3 = l3_offset_of(frame);
  const size_t l4 = l4_offset_of(frame);
  if (l4 + 8 + padding > frame.size() || l4 < l3 + 20) return;
  const size_t end = frame.size() - padding;
  const bool ipv6 = byte_at(frame, l3) >> 4 == 6;
  if ((what & kMendIpLength) != 0) {
    ipv6 ? set16(frame, l3 + 4, end - l3 - 40) : set16(frame, l3 + 2, end - l3);
  }
  if ((what & kMendUdpLength) != 0) set16(frame, l4 + 4, end - l4);
  if ((what & kMendIpChecksum) != 0 && !ipv6) {
    set16(frame, l3 + 10, 0);
    set16(frame, l3 + 10, slow_checksum(frame.substr(l3, l4 - l3)));
  }
  if ((what & kMendUdpChecksum) != 0) set16(frame, l4 + 6, udp_checksum_of(frame));
}

// A frame from one machine to another that carries `payload`.
inline std::string frame_of(const std::string& payload, const FrameForm& form = {}) {
  std::string frame("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02", 12);
  const auto append16 = [&frame](uint32_t value) {
    frame += {static_cast<char>(value >> 8), static_cast<char>(value)};
  };
  uint32_t vlan = 0x2064;  // priority 1, VLAN 100
  for (const uint16_t tag : form.vlan_tags) {
    append16(tag);
    append16(vlan++);
  }
  append16(form.ipv6 ? 0x86dd : 0x0800);
  if (form.ipv6) {
    const size_t l3 = frame.size();
    frame += std::string("\x60\x01\x23\x45\x00\x00\x11\x05", 8);
    frame += std::string("\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x0a", 16);
    frame += std::string("\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x0b", 16);
    size_t named_at = l3 + 6;  // where the next header's type goes
    for (const Ipv6Extension& extension : form.extensions) {
      frame[named_at] = static_cast<char>(extension.type);
      named_at = frame.size();
      frame += '\x11' + extension.rest;
    }
  } else {
    frame += static_cast<char>(0x45 + form.ip_options.size() / 4);
    frame += std::string("\x10\x00\x00\x12\x34\x00\x00\x05\x11\x00\x00", 11);
    frame += std::string("\xc0\x00\x02\x0a\xc6\x33\x64\x0b", 8) + form.ip_options;
  }
  append16(form.source_port);
  append16(form.destination_port);
  append16(0);
  append16(0);
  frame += payload + form.padding;
  mend(frame, form.checksum ? kMendAll : kMendAll & ~uint32_t{kMendUdpChecksum},
       form.padding.size());
  return frame;
}

}  // namespace warpcache::net::testing
