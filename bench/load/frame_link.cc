// SPDX-License-Identifier: Apache-2.0
#include "load/frame_link.h"

#include <algorithm>
#include <cstring>

namespace warpcache::load {
namespace {

constexpr uint32_t kL3 = net::kEthernetHeaderSize;
constexpr uint32_t kL4 = kL3 + net::kIpv4HeaderSize;
constexpr uint32_t kPayload = kL4 + net::kUdpProtocolHeaderSize;
constexpr uint32_t kPortFrom = 0;  // in the UDP header
constexpr uint32_t kPortTo = 2;

}  // namespace

FrameLink::FrameLink(std::unique_ptr<io::FramePort> port, const sockaddr_in& client,
                     const sockaddr_in& server)
    : port_(std::move(port)),
      reply_(kPayload),
      out_(size_t{kFramesMax} * kFrameBytes),
      slots_(kFramesMax),
      times_(kFramesMax) {
  const uint8_t ethernet[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0};
  std::copy(std::begin(ethernet), std::end(ethernet), reply_.begin());
  reply_[kL3] = 0x45;
  std::memcpy(&reply_[kL3 + net::kIpv4SourceOffset], &server.sin_addr, net::kIpv4AddressSize);
  std::memcpy(&reply_[kL3 + net::kIpv4SourceOffset + net::kIpv4AddressSize], &client.sin_addr,
              net::kIpv4AddressSize);
  std::memcpy(&reply_[kL4 + kPortFrom], &server.sin_port, sizeof server.sin_port);
  packet_.ip_version = 4;
  packet_.l3_offset = kL3;
  packet_.l4_offset = kL4;
  packet_.has_udp_checksum = true;
  sent_.reserve(kFramesMax);
  const MutableBytes own = port_->memory();
  if (own.size == 0) memory_.resize(size_t{4} * io::kFrameBytesMax);
  buffer_.data = own.size != 0 ? own.data : memory_.data();
  buffer_.size = static_cast<uint32_t>(memory_.size());
  buffer_.slots = slots_.data();
  buffer_.times_ns = times_.data();
  buffer_.frames_max = kFramesMax;
}

uint16_t FrameLink::client_port_of(Bytes frame) {
  if (frame.size < kPayload) return 0;
  return static_cast<uint16_t>(frame.data[kL4 + kPortTo] << 8 | frame.data[kL4 + kPortTo + 1]);
}

bool FrameLink::wait_for_server(uint32_t time_ms_max) {
  constexpr uint16_t kPort = 19'999;
  constexpr uint32_t kStepMs = 10;
  constexpr std::string_view kVersion("\0\0\0\0\0\1\0\0version\r\n", 17);
  bool answered = false;
  for (uint32_t ms = 0; ms < time_ms_max && !answered; ms += kStepMs) {
    add(kPort, kVersion);
    send();
    const auto take = [&answered](uint16_t, std::string_view) { answered = true; };
    if (!receive(kStepMs, take)) break;
  }
  return answered;
}

void FrameLink::add(uint16_t client_port, std::string_view datagram) {
  WC_ASSERT(datagram.size() <= kDatagramMax);
  if (sent_.size() == kFramesMax) send();
  uint8_t* const frame = out_.data() + sent_.size() * kFrameBytes;
  reply_[kL4 + kPortTo] = static_cast<uint8_t>(client_port >> 8);
  reply_[kL4 + kPortTo + 1] = static_cast<uint8_t>(client_port);
  const auto size = static_cast<uint32_t>(datagram.size());
  net::compose_reply_headers(reply_.data(), packet_, size, frame);
  std::memcpy(frame + kPayload, datagram.data(), size);
  net::finish_udp_checksum(packet_, size, frame);
  net::pad_frame(frame, kPayload + size);
  sent_.push_back({{frame, net::padded_frame_size(kPayload + size)}, 0});
}

void FrameLink::send() {
  if (!sent_.empty()) port_->send(0, sent_.data(), static_cast<uint32_t>(sent_.size()));
  sent_.clear();
}

}  // namespace warpcache::load
