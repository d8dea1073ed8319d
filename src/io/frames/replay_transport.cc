// SPDX-License-Identifier: Apache-2.0
#include "io/frames/replay_transport.h"

#include <algorithm>
#include <numeric>

#include "base/assert.h"
#include "base/mem.h"
#include "io/datagram_cutter.h"
#include "net/packet.h"
#include "protocol/framing/udp_frame.h"

namespace warpcache::io {

ReplayTransport::ReplayTransport(const ReplayConfig& config, const FrameList& input)
    : config_(config), input_(input) {
  WC_ASSERT(config.burst_frames_max > 0);
}

void ReplayTransport::attach(SessionObserver&, PinReleaser& releaser) { releaser_ = &releaser; }

bool ReplayTransport::receive(InputArena& arena, std::vector<RxChunk>& chunks, int) {
  WC_ASSERT(new_handles_.empty());
  requests_.clear();
  if (next_frame_ == input_.size()) return false;
  // A UDP payload has less than 64 KB, whatever the frame's size.
  for (uint32_t i = 0; i < config_.burst_frames_max && next_frame_ < input_.size() &&
                       arena.size - arena.used > UINT16_MAX && chunks.size() < kChunksMax;
       ++i) {
    take_frame(next_frame_++, arena, chunks);
  }
  return true;
}

void ReplayTransport::take_frame(size_t index, InputArena& arena, std::vector<RxChunk>& chunks) {
  const Bytes frame = input_[index];
  counters_.bytes_read.add(frame.size);
  Request request{index, {}, 0};
  const net::PacketVerdict verdict = net::parse_packet(frame, config_.udp_port, request.packet);
  ++verdicts_[static_cast<size_t>(verdict)];
  if (verdict != net::PacketVerdict::kRequest) return;
  counters_.datagrams_received.add(1);
  const Bytes datagram = frame.sub(request.packet.payload_offset, request.packet.payload_size);
  protocol::UdpHeader header;
  if (protocol::parse_udp_header(datagram, header) != protocol::UdpVerdict::kRequest) {
    counters_.datagrams_malformed.add(1);
    return;
  }
  request.id = header.request_id;
  const Bytes message = datagram.from(protocol::kUdpHeaderSize);
  RxChunk chunk;
  chunk.handle = static_cast<uint32_t>(requests_.size());
  chunk.offset = arena.used;
  chunk.size = static_cast<uint32_t>(message.size);
  chunk.datagram = true;
  mem_copy(arena.data + arena.used, message.data, message.size);
  arena.used += chunk.size;
  chunks.push_back(chunk);
  requests_.push_back(request);
}

void ReplayTransport::complete(const RxChunk& chunk, const RxNext&, const TxSpan* spans,
                               uint32_t span_count) {
  const Request& request = requests_[chunk.handle];
  DatagramCutter cutter(request.id, spans, span_count);
  if (!cutter.fits()) counters_.replies_dropped.add(1);
  while (!cutter.done()) {
    add_reply(request, cutter);
    new_handles_.push_back(chunk.handle);
  }
  release_pins(spans, span_count, *releaser_);
}

// Makes the frame of the reply's next datagram.
void ReplayTransport::add_reply(const Request& request, DatagramCutter& cutter) {
  const uint32_t udp_payload = protocol::kUdpHeaderSize + cutter.next_payload_size();
  const uint32_t headers = net::reply_headers_size(request.packet);
  reply_.resize(net::reply_frame_size(request.packet, udp_payload));
  net::compose_reply_headers(input_[request.frame].data, request.packet, udp_payload,
                             reply_.data());
  uint8_t* out = reply_.data() + headers + protocol::kUdpHeaderSize;
  cutter.next(reply_.data() + headers, [&out](const uint8_t* data, uint32_t size) {
    mem_copy(out, data, size);
    out += size;
  });
  net::finish_udp_checksum(request.packet, udp_payload, reply_.data());
  net::pad_frame(reply_.data(), headers + udp_payload);
  new_replies_.add({reply_.data(), reply_.size()}, input_.time_ns(request.frame));
}

void ReplayTransport::flush() {
  std::vector<size_t> order(new_handles_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [this](size_t a, size_t b) { return new_handles_[a] < new_handles_[b]; });
  for (const size_t i : order) {
    counters_.bytes_written.add(new_replies_[i].size);
    replies_.add(new_replies_[i], new_replies_.time_ns(i));
  }
  counters_.datagrams_sent.add(order.size());
  new_replies_.clear();
  new_handles_.clear();
}

}  // namespace warpcache::io
