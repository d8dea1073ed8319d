// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_FRAME_LINK_H_
#define WARPCACHE_BENCH_LOAD_FRAME_LINK_H_

#include <netinet/in.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "io/frames/frame_port.h"
#include "net/packet.h"

namespace warpcache::load {

// UDP datagrams to and from a server in whole Ethernet frames, through a port of frames. Not
// thread-safe.
class FrameLink {
 public:
  // The addresses are IPv4.
  FrameLink(std::unique_ptr<io::FramePort> port, const sockaddr_in& client,
            const sockaddr_in& server);
  FrameLink(const FrameLink&) = delete;
  FrameLink& operator=(const FrameLink&) = delete;

  // Asks the server for its version until it answers. False: it does not within the time.
  bool wait_for_server(uint32_t time_ms_max);

  // The largest datagram that fits into a frame without its check sequence.
  static constexpr size_t kDatagramMax =
      1514 - net::kEthernetHeaderSize - net::kIpv4HeaderSize - net::kUdpProtocolHeaderSize;

  // Adds a datagram to those for send(). REQUIRES: it has at most kDatagramMax bytes.
  void add(uint16_t client_port, std::string_view datagram);
  void send();

  // Waits at most timeout_ms, and calls take(port, datagram) for each datagram from the server that
  // has come, with the client's port. False: the port has ended.
  template <typename Take>
  bool receive(int timeout_ms, Take take) {
    buffer_.count = buffer_.used = 0;
    const bool open = port_->receive(buffer_, timeout_ms);
    for (uint32_t i = 0; i < buffer_.count; ++i) {
      const Bytes frame = {buffer_.data + slots_[i].offset, slots_[i].size};
      const uint16_t port = client_port_of(frame);
      net::Packet packet;
      if (net::parse_packet(frame, port, packet) != net::PacketVerdict::kRequest) continue;
      const Bytes datagram = frame.sub(packet.payload_offset, packet.payload_size);
      take(port, {reinterpret_cast<const char*>(datagram.data), datagram.size});
    }
    port_->take_back(buffer_);
    return open;
  }

 private:
  static constexpr uint32_t kFramesMax = 1024;
  static constexpr uint32_t kFrameBytes = 1536;

  static uint16_t client_port_of(Bytes frame);

  std::unique_ptr<io::FramePort> port_;
  std::vector<uint8_t> reply_;  // a frame from server to client, whose reply is what is sent
  net::Packet packet_ = {};
  std::vector<uint8_t> out_;
  std::vector<io::TxFrame> sent_;
  std::vector<uint8_t> memory_;
  std::vector<net::PacketSlot> slots_;
  std::vector<uint64_t> times_;
  io::FrameBuffer buffer_;
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_FRAME_LINK_H_
