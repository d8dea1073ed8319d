// SPDX-License-Identifier: Apache-2.0
//
// The datagrams of one worker, received and sent in bursts. If the kernel coalesces (UDP_GRO) or
// splits (UDP_SEGMENT) datagrams, one message carries several of them; if not, one. Owner's thread
// only.
//
// A request is one datagram. Its replies form one sequence of datagrams
// (protocol/framing/udp_frame.h).
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "io/counters.h"
#include "io/transport.h"
#include "io/udp_guard.h"
#include "io/unique_fd.h"
#include "protocol/framing/datagram_cutter.h"
#include "protocol/framing/udp_frame.h"

namespace warpcache::io {

// This bit is set in the handle of a datagram's RxChunk.
inline constexpr uint32_t kDatagramHandle = 0x80000000u;

// A bound, non-blocking socket.
struct UdpSocket {
  UniqueFd fd;
  bool admin = true;  // see RxChunk
};

class UdpBurst {
 public:
  UdpBurst(std::vector<UdpSocket> sockets, UdpGuard guard, TransportCounters& counters);
  UdpBurst(const UdpBurst&) = delete;
  UdpBurst& operator=(const UdpBurst&) = delete;
  ~UdpBurst();

  uint32_t socket_count() const { return static_cast<uint32_t>(sockets_.size()); }
  int fd(uint32_t socket) const { return sockets_[socket].fd.get(); }

  // The datagrams that are received next belong to RxBurst `burst`; those that it had are
  // forgotten.
  void start_burst(uint32_t burst);

  // Receives from a socket with one system call. Returns false if the arena or the burst has no
  // space for more: call again for the next one.
  bool receive(uint32_t socket, InputArena& arena, std::vector<RxChunk>& chunks);

  // The replies that follow, up to flush(), are to datagrams of RxBurst `burst`.
  void begin_replies(uint32_t burst);
  // Queues a reply, unless it is empty. REQUIRES: the bytes stay valid until flush().
  void reply(uint32_t handle, const ReplySpan* spans, uint32_t span_count, PinReleaser& releaser);

  // Sends the queued replies and releases their pins.
  void flush(PinReleaser& releaser);

  void close();

 private:
  static constexpr uint32_t kMessagesPerCall = 32;
  static constexpr uint32_t kMessagesPerBurst = 128;
  // Space for the largest datagram, and for as much as the kernel coalesces. Not a multiple of the
  // page size, so that the messages of a burst do not map to the same cache sets.
  static constexpr uint32_t kMessageBytes = 64 * 1024 + 192;
  static constexpr uint32_t kPacketsMax = 1024;  // packets queued before a flush
  static constexpr uint32_t kPiecesMax = 8192;   // iovecs of these packets
  static constexpr uint32_t kPiecesPerPacketMax = 512;
  static constexpr uint32_t kSegmentsMax = 64;  // datagrams of a message that the kernel splits
  static constexpr uint32_t kSegmentedBytesMax = 65000;
  static constexpr int kSendWaitMs = 5;  // wait for space in the socket buffer, once a burst

  struct Socket {
    UniqueFd fd;
    bool admin;
    bool splits = true;  // UDP_SEGMENT, until the kernel refuses
  };
  struct Request {
    uint32_t socket;
    uint32_t source;  // index into Received::sources
    uint32_t bytes;   // header included
    uint16_t id;
  };
  struct Packet {
    uint32_t socket;
    uint32_t source;
    uint32_t first_piece;
    uint32_t piece_count;
    uint32_t bytes;
  };
  // The datagrams of a burst, and who has sent them.
  struct Received {
    std::vector<sockaddr_storage> sources;
    std::vector<socklen_t> source_sizes;
    uint32_t source_count = 0;
    std::vector<Request> requests;
  };
  struct alignas(8) Control {
    uint8_t bytes[64];
  };

  void take_message(uint32_t socket, uint32_t source, uint32_t offset, uint32_t size,
                    uint32_t segment_size, InputArena& arena, std::vector<RxChunk>& chunks);
  void add_packet(const Request& request, protocol::DatagramCutter& cutter);
  bool same_source(const Packet& a, const Packet& b) const;
  uint32_t gather(uint32_t first, bool split, mmsghdr& message, Control& control);
  void send_queued();
  uint32_t send_from(uint32_t first);

  std::vector<Socket> sockets_;
  UdpGuard guard_;
  TransportCounters& counters_;
  std::array<Received, kRxBurstsMax> bursts_;
  Received* received_ = bursts_.data();  // of the burst that receives, or is replied to
  std::vector<Packet> packets_;
  std::vector<iovec> pieces_;
  std::unique_ptr<std::array<uint8_t, protocol::kUdpHeaderSize>[]> headers_;
  std::vector<uint32_t> pins_;
  bool waited_ = false;
};

}  // namespace warpcache::io
