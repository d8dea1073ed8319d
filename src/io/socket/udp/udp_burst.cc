// SPDX-License-Identifier: Apache-2.0
#include "io/socket/udp/udp_burst.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace warpcache::io {
namespace {

using protocol::kUdpHeaderSize;

// The size of the datagrams that the kernel has coalesced into a message; 0: it is one datagram.
uint32_t coalesced_size(msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
      int size = 0;
      std::memcpy(&size, CMSG_DATA(c), sizeof size);
      return size > 0 ? static_cast<uint32_t>(size) : 0;
    }
  }
  return 0;
}

}  // namespace

UdpBurst::UdpBurst(std::vector<UdpSocket> sockets, UdpGuard guard, TransportCounters& counters)
    : guard_(std::move(guard)), counters_(counters) {
  if (sockets.empty()) return;
  for (UdpSocket& socket : sockets) {
    const int on = 1;
    // If the kernel refuses it, each message is one datagram.
    (void)setsockopt(socket.fd.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof on);
    sockets_.push_back({std::move(socket.fd), socket.admin});
  }
  for (Received& burst : bursts_) {
    burst.sources.resize(kMessagesPerBurst);
    burst.source_sizes.resize(kMessagesPerBurst);
    burst.requests.reserve(kMessagesPerBurst * kSegmentsMax);
  }
  packets_.reserve(kPacketsMax);
  pieces_.reserve(kPiecesMax);
  headers_ = std::make_unique<std::array<uint8_t, kUdpHeaderSize>[]>(kPacketsMax);
  pins_.reserve(kPacketsMax);
}

UdpBurst::~UdpBurst() { WC_ASSERT(pins_.empty()); }

void UdpBurst::close() { sockets_.clear(); }

void UdpBurst::start_burst(uint32_t burst) {
  WC_ASSERT(packets_.empty());
  received_ = &bursts_[burst];
  received_->source_count = 0;
  received_->requests.clear();
}

void UdpBurst::begin_replies(uint32_t burst) {
  received_ = &bursts_[burst];
  waited_ = false;
}

bool UdpBurst::receive(uint32_t socket, InputArena& arena, std::vector<RxChunk>& chunks) {
  const auto chunk_count = static_cast<uint32_t>(chunks.size());
  const uint32_t room = std::min({kMessagesPerCall, kMessagesPerBurst - received_->source_count,
                                  (arena.size - arena.used) / kMessageBytes,
                                  (kChunksMax - chunk_count) / kSegmentsMax});
  if (room == 0) return false;
  mmsghdr messages[kMessagesPerCall];
  iovec buffers[kMessagesPerCall];
  Control controls[kMessagesPerCall];
  for (uint32_t i = 0; i < room; ++i) {
    buffers[i] = {arena.data + arena.used + i * kMessageBytes, kMessageBytes};
    messages[i] = {};
    msghdr& header = messages[i].msg_hdr;
    header.msg_name = &received_->sources[received_->source_count + i];
    header.msg_namelen = sizeof(sockaddr_storage);
    header.msg_iov = &buffers[i];
    header.msg_iovlen = 1;
    header.msg_control = controls[i].bytes;
    header.msg_controllen = sizeof controls[i].bytes;
  }
  const int count = recvmmsg(sockets_[socket].fd.get(), messages, room, MSG_DONTWAIT, nullptr);
  if (count <= 0) return true;
  const uint32_t base = arena.used;
  for (uint32_t i = 0; i < static_cast<uint32_t>(count); ++i) {
    received_->source_sizes[received_->source_count] = messages[i].msg_hdr.msg_namelen;
    take_message(socket, received_->source_count++, base + i * kMessageBytes, messages[i].msg_len,
                 coalesced_size(messages[i].msg_hdr), arena, chunks);
    arena.used = base + i * kMessageBytes + messages[i].msg_len;
  }
  return true;
}

void UdpBurst::take_message(uint32_t socket, uint32_t source, uint32_t offset, uint32_t size,
                            uint32_t segment_size, InputArena& arena,
                            std::vector<RxChunk>& chunks) {
  counters_.bytes_read.add(size);
  counters_.datagram_bytes_read.add(size);
  if (segment_size == 0) segment_size = std::max(size, 1u);
  for (uint32_t at = 0; at < size; at += segment_size) {
    const uint32_t bytes = std::min(segment_size, size - at);
    const uint8_t* datagram = arena.data + offset + at;
    counters_.datagrams_received.add(1);
    // A request of several datagrams is dropped, as in memcached.
    protocol::UdpHeader header;
    if (protocol::parse_udp_header({datagram, bytes}, header) != protocol::UdpVerdict::kRequest) {
      counters_.datagrams_malformed.add(1);
      continue;
    }
    RxChunk chunk;
    chunk.admin = sockets_[socket].admin;
    chunk.handle = kDatagramHandle | static_cast<uint32_t>(received_->requests.size());
    chunk.offset = offset + at + kUdpHeaderSize;
    chunk.size = bytes - kUdpHeaderSize;
    chunk.datagram = true;
    chunk.udp_fd = sockets_[socket].fd.get();
    chunks.push_back(chunk);
    received_->requests.push_back({socket, source, bytes, header.request_id});
  }
}

void UdpBurst::reply(uint32_t handle, const ReplySpan* spans, uint32_t span_count,
                     PinReleaser& releaser) {
  const Request& request = received_->requests[handle & ~kDatagramHandle];
  protocol::DatagramCutter cutter(request.id, spans, span_count);
  if (cutter.empty()) return release_pins(spans, span_count, releaser);
  const bool permitted =
      guard_.permits(received_->sources[request.source], request.bytes, cutter.bytes_on_wire());
  if (!permitted || !cutter.fits()) {
    (permitted ? counters_.replies_dropped : counters_.replies_amplified).add(1);
    return release_pins(spans, span_count, releaser);
  }
  while (!cutter.done()) {
    if (packets_.size() == kPacketsMax || pieces_.size() + kPiecesPerPacketMax > kPiecesMax) {
      send_queued();
    }
    add_packet(request, cutter);
  }
  if (WC_UNLIKELY(pins_.size() + span_count > pins_.capacity())) {
    flush(releaser);
    return release_pins(spans, span_count, releaser);
  }
  for (uint32_t i = 0; i < span_count; ++i) {
    if (has_pin_to_release(spans[i])) pins_.push_back(spans[i].pin);
  }
}

// Queues the reply's next datagram.
void UdpBurst::add_packet(const Request& request, protocol::DatagramCutter& cutter) {
  uint8_t* header = headers_[packets_.size()].data();
  const auto first_piece = static_cast<uint32_t>(pieces_.size());
  pieces_.push_back({header, kUdpHeaderSize});
  const uint32_t payload = cutter.next(header, [this](const uint8_t* data, uint32_t size) {
    pieces_.push_back({const_cast<uint8_t*>(data), size});
  });
  packets_.push_back({request.socket, request.source, first_piece,
                      static_cast<uint32_t>(pieces_.size()) - first_piece,
                      payload + kUdpHeaderSize});
}

void UdpBurst::flush(PinReleaser& releaser) {
  send_queued();
  for (const uint32_t pin : pins_) releaser.release(pin);
  pins_.clear();
}

void UdpBurst::send_queued() {
  for (uint32_t first = 0; first < packets_.size();) first += send_from(first);
  packets_.clear();
  pieces_.clear();
}

bool UdpBurst::same_source(const Packet& a, const Packet& b) const {
  if (a.socket != b.socket) return false;
  if (a.source == b.source) return true;
  const socklen_t size = received_->source_sizes[a.source];
  return size == received_->source_sizes[b.source] &&
         std::memcmp(&received_->sources[a.source], &received_->sources[b.source], size) == 0;
}

// Fills `message` with packet `first` and, with `split`, the packets after it that the kernel can
// separate again: same client, same size, only the last one shorter. Returns the number of packets.
uint32_t UdpBurst::gather(uint32_t first, bool split, mmsghdr& message, Control& control) {
  const Packet& head = packets_[first];
  uint32_t count = 1;
  uint32_t pieces = head.piece_count;
  uint32_t bytes = head.bytes;
  while (split && count < kSegmentsMax && first + count < packets_.size()) {
    const Packet& next = packets_[first + count];
    if (next.bytes > head.bytes || bytes + next.bytes > kSegmentedBytesMax ||
        pieces + next.piece_count > kPiecesPerPacketMax || !same_source(head, next)) {
      break;
    }
    ++count;
    pieces += next.piece_count;
    bytes += next.bytes;
    if (next.bytes < head.bytes) break;
  }
  message = {};
  msghdr& header = message.msg_hdr;
  header.msg_name = &received_->sources[head.source];
  header.msg_namelen = received_->source_sizes[head.source];
  header.msg_iov = &pieces_[head.first_piece];
  header.msg_iovlen = pieces;
  if (count > 1) {
    control = {};  // the kernel reads its padding too
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(sizeof(uint16_t));
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = IPPROTO_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    const auto size = static_cast<uint16_t>(head.bytes);
    std::memcpy(CMSG_DATA(c), &size, sizeof size);
  }
  return count;
}

// Sends consecutive packets of one socket with one call. Returns the number of packets that are
// sent or dropped: at least one.
uint32_t UdpBurst::send_from(uint32_t first) {
  Socket& socket = sockets_[packets_[first].socket];
  mmsghdr messages[kMessagesPerCall];
  Control controls[kMessagesPerCall];
  uint32_t packet_counts[kMessagesPerCall] = {};
  uint32_t count = 0;
  for (uint32_t next = first; next < packets_.size() && count < kMessagesPerCall; ++count) {
    if (packets_[next].socket != packets_[first].socket) break;
    packet_counts[count] = gather(next, socket.splits, messages[count], controls[count]);
    next += packet_counts[count];
  }
  const int sent = sendmmsg(socket.fd.get(), messages, count, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) {
    uint32_t packets = 0;
    for (uint32_t i = 0; i < static_cast<uint32_t>(sent); ++i) {
      counters_.bytes_written.add(messages[i].msg_len);
      counters_.datagram_bytes_written.add(messages[i].msg_len);
      packets += packet_counts[i];
    }
    counters_.datagrams_sent.add(packets);
    return packets;
  }
  if (packet_counts[0] > 1 && (errno == EINVAL || errno == EIO || errno == EOPNOTSUPP)) {
    socket.splits = false;  // the network device cannot: one datagram a message from now on
    return 0;
  }
  if ((errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) && !waited_) {
    waited_ = true;
    pollfd writable{socket.fd.get(), POLLOUT, 0};
    if (poll(&writable, 1, kSendWaitMs) > 0) return 0;
  }
  counters_.replies_dropped.add(packet_counts[0]);
  return packet_counts[0];
}

}  // namespace warpcache::io
