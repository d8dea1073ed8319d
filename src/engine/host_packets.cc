// SPDX-License-Identifier: Apache-2.0
#include "engine/host_packets.h"

#include <cstring>
#include <utility>

#include "base/mem.h"
#include "engine/datagram.h"
#include "protocol/framing/datagram_cutter.h"
#include "protocol/framing/udp_frame.h"

namespace warpcache::engine {

namespace {

using net::PacketResult;

constexpr uint32_t kPacketsMax = 1024;  // of a batch
constexpr uint32_t kFramesMax = 2 * kDatagramFramesMax;
static_assert(kPacketsMax <= kBatchEntriesMax);

}  // namespace

HostPackets::HostPackets(const protocol::FrameLimits& limits, uint16_t udp_port, MutableBytes input)
    : limits_(limits), udp_port_(udp_port), input_(input) {
  // As the worker's: allocated at the start, occupied when used.
  batch_.frames.reserve(kFramesMax);
  batch_.entries.reserve(kPacketsMax);
  batch_.spans.reserve(kBatchSpansMax);
  running_.reserve(kPacketsMax);
  waiting_.reserve(kPacketsMax);
}

uint32_t HostPackets::run(Engine& engine, net::PacketBurst& burst,
                          const std::vector<uint32_t>& packets, uint32_t reply_used) {
  reply_used_ = net::arena_bytes(reply_used);
  run_each(engine, burst, static_cast<uint32_t>(packets.size()),
           [&packets](uint32_t i) { return packets[i]; });
  return reply_used_;
}

void HostPackets::run_all(Engine& engine, net::PacketBurst& burst) {
  reply_used_ = 0;
  run_each(engine, burst, burst.count, [](uint32_t i) { return i; });
}

template <typename IndexOf>
void HostPackets::run_each(Engine& engine, net::PacketBurst& burst, uint32_t count,
                           IndexOf index_of) {
  batch_.input = input_.empty() ? burst.input : input_.data;
  waiting_.clear();
  for (uint32_t next = 0; next < count || !waiting_.empty();) {
    batch_.frames.clear();
    batch_.entries.clear();
    running_.clear();
    input_used_ = 0;
    // Those that wait were in one batch, so they fit into the next.
    for (const uint32_t index : std::exchange(waiting_, {})) (void)add(burst, index);
    while (next < count && add(burst, index_of(next))) ++next;
    if (!batch_.entries.empty()) run_batch(engine, burst);
  }
}

// Reads the packet's headers and appends its datagram to the batch. False: the batch is full.
bool HostPackets::add(net::PacketBurst& burst, uint32_t index) {
  if (batch_.entries.size() == kPacketsMax ||
      batch_.frames.size() + kDatagramFramesMax > kFramesMax)
    return false;
  const Bytes frame = burst.frame(index);
  PacketResult& result = burst.results[index];
  Running running{index, {}, 0};
  const net::PacketVerdict verdict = net::parse_packet(frame, udp_port_, running.packet);
  if (verdict != net::PacketVerdict::kRequest) {
    result = PacketResult::dropped(verdict);
    return true;
  }
  const Bytes datagram = frame.sub(running.packet.payload_offset, running.packet.payload_size);
  protocol::UdpHeader header;
  if (protocol::parse_udp_header(datagram, header) != protocol::UdpVerdict::kRequest) {
    result = PacketResult::dropped(verdict);
    return true;
  }
  running.request_id = header.request_id;
  const Bytes message = datagram.from(protocol::kUdpHeaderSize);
  auto offset = static_cast<uint32_t>(message.data - burst.input);
  if (!input_.empty()) {
    if (input_used_ + message.size > input_.size) return false;
    mem_copy(input_.data + input_used_, message.data, message.size);
    offset = input_used_;
    input_used_ += static_cast<uint32_t>(message.size);
  }
  result = PacketResult::done(0, 0);
  BatchEntry entry;
  if (append_datagram(batch_, limits_, offset, static_cast<uint32_t>(message.size), entry)) {
    running_.push_back(running);
  }
  return true;
}

void HostPackets::run_batch(Engine& engine, net::PacketBurst& burst) {
  engine.submit(&batch_);
  while (engine.poll() == nullptr) {
  }
  // The reply arena of the engine is empty at the start of a batch. A packet that it has no space
  // for even then gets no reply.
  const bool none_served = batch_.entries.front().frames_done == 0 && !batch_.entries.front().close;
  for (size_t i = 0; i < running_.size(); ++i) {
    const BatchEntry& entry = batch_.entries[i];
    if (entry.frames_done != 0 || entry.close) {
      answer(burst, running_[i], entry);
      for (uint32_t span = 0; span < entry.span_count; ++span) {
        const ReplySpan& sent = batch_.spans[entry.first_span + span];
        if (protocol::has_pin_to_release(sent)) engine.release(sent.pin);
      }
    } else if (none_served) {
      ++burst.replies_dropped;
    } else {
      waiting_.push_back(running_[i].index);
    }
  }
}

// Composes the reply frames after the earlier ones, as net::ReplyFrames reads them.
void HostPackets::answer(net::PacketBurst& burst, const Running& running, const BatchEntry& entry) {
  const net::Packet& packet = running.packet;
  const auto frame_bytes = [&packet](uint32_t payload) {
    return net::reply_frame_size(packet, protocol::kUdpHeaderSize + payload);
  };
  protocol::DatagramCutter cutter(running.request_id, batch_.spans.data() + entry.first_span,
                                  entry.span_count);
  if (cutter.empty()) return;
  const uint32_t count = cutter.count();
  const uint32_t first_bytes = cutter.fits() ? frame_bytes(cutter.payload_size(0)) : 0;
  const uint32_t last_bytes = cutter.fits() ? frame_bytes(cutter.payload_size(count - 1)) : 0;
  const bool is_run = count > 1;
  const uint64_t begin = is_run ? sizeof(net::FrameRun) : 0;
  const uint64_t bytes =
      begin + uint64_t{count - 1} * net::arena_bytes(first_bytes) + net::arena_bytes(last_bytes);
  if (!cutter.fits() || reply_used_ + bytes > burst.reply_bytes) {
    ++burst.replies_dropped;
    return;
  }
  uint8_t* at = burst.replies + reply_used_;
  burst.results[running.index] =
      is_run ? PacketResult::done_run(reply_used_) : PacketResult::done(reply_used_, last_bytes);
  if (is_run) {
    const net::FrameRun run = {count, first_bytes, last_bytes, 0};
    std::memcpy(at, &run, sizeof(run));
    at += sizeof(run);
  }
  const uint8_t* const request = burst.frame(running.index).data;
  const uint32_t headers = net::reply_headers_size(packet);
  for (; !cutter.done(); at += net::arena_bytes(first_bytes)) {
    const uint32_t udp_payload = protocol::kUdpHeaderSize + cutter.next_payload_size();
    net::compose_reply_headers(request, packet, udp_payload, at);
    uint8_t* out = at + headers + protocol::kUdpHeaderSize;
    cutter.next(at + headers, [&out](const uint8_t* data, uint32_t size) {
      mem_copy(out, data, size);
      out += size;
    });
    net::finish_udp_checksum(packet, udp_payload, at);
    net::pad_frame(at, headers + udp_payload);
  }
  reply_used_ += static_cast<uint32_t>(bytes);
}

}  // namespace warpcache::engine
