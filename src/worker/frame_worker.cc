// SPDX-License-Identifier: Apache-2.0
#include "worker/frame_worker.h"

#include <algorithm>
#include <utility>

#include "base/mem.h"
#include "net/packet.h"
#include "protocol/framing/udp_frame.h"

namespace warpcache::worker {

namespace {

constexpr int kWaitMs = 1000;
// Replies that a port gets at a time: those of a large burst would leave the cache in between.
constexpr uint32_t kRepliesAtOnce = io::RepliesBeside::kBesideMax;
// The shortest request that is answered: memcached's header, a letter and a line end.
constexpr uint64_t kRequestPayloadMin = protocol::kUdpHeaderSize + 2;

io::IpAddress source_of(Bytes frame, const net::Packet& packet) {
  const uint8_t* const ip = frame.data + packet.l3_offset;
  io::IpAddress address{};
  if (packet.ip_version == 4) {
    address[10] = address[11] = 0xff;
    mem_copy(address.data() + 12, ip + net::kIpv4SourceOffset, net::kIpv4AddressSize);
  } else {
    mem_copy(address.data(), ip + net::kIpv6SourceOffset, net::kIpv6AddressSize);
  }
  return address;
}

}  // namespace

FrameWorker::FrameWorker(const FrameWorkerConfig& config, io::UdpGuard guard, io::FramePort& port,
                         engine::Engine& engine)
    : config_(config), guard_(std::move(guard)), port_(port), engine_(engine) {
  while (short_reply_max_ < net::PacketResult::kSizeMax &&
         guard_.permits_to_all(kRequestPayloadMin, short_reply_max_ + 1)) {
    ++short_reply_max_;
  }
  WC_ASSERT(config.burst_packets_max > 0 && config.burst_input_bytes >= io::kFrameBytesMax);
}

std::string FrameWorker::open() {
  std::string failure = engine_.open_packets(config_.packets);
  const MutableBytes own = port_.memory();
  on_gpu_ = port_.gpu_memory();
  if (failure.empty() && own.size != 0 && on_gpu_ == nullptr) {
    failure = engine_.use_packet_memory(own);
  }
  if (!failure.empty()) return failure;
  WC_ASSERT(engine_.packet_bursts() <= io::kFrameBurstsMax);
  for (uint32_t i = 0; i < engine_.packet_bursts(); ++i) {
    Burst& burst = *bursts_.emplace_back(std::make_unique<Burst>());
    burst.times_ns.resize(config_.burst_packets_max);
    io::FrameBuffer& buffer = burst.buffer;
    buffer.number = i;
    if (own.size != 0) {
      buffer.data = own.data;
    } else {
      buffer.data = engine_.packet_memory(config_.burst_input_bytes);
      buffer.size = config_.burst_input_bytes;
    }
    buffer.slots = reinterpret_cast<net::PacketSlot*>(
        engine_.packet_memory(uint64_t{config_.burst_packets_max} * sizeof(net::PacketSlot)));
    buffer.times_ns = burst.times_ns.data();
    buffer.frames_max = config_.burst_packets_max;
    net::PacketBurst& packets = burst.packets;
    packets.on_device = on_gpu_ != nullptr;
    burst.replies = {engine_.packet_memory(config_.burst_reply_bytes), config_.burst_reply_bytes};
    packets.results = reinterpret_cast<net::PacketResult*>(
        engine_.packet_memory(uint64_t{config_.burst_packets_max} * sizeof(net::PacketResult)));
    free_.push_back(&burst);
  }
  replies_.reserve(config_.burst_packets_max);
  passed_on_.reserve(config_.burst_packets_max);
  return "";
}

void FrameWorker::run() {
  while (run_once(kWaitMs)) {
  }
}

bool FrameWorker::run_once(int timeout_ms) {
  bool received = false;
  bool may_receive = true;
  if (!free_.empty()) {
    Burst& burst = *free_.back();
    burst.buffer.clear();
    may_receive = port_.receive(burst.buffer, under_way_ == 0 ? timeout_ms : 0);
    received = burst.buffer.count != 0;
    if (received) begin(burst);
  }
  // While frames come and a burst is free, the engine is given more before its replies are sent.
  if (received && !free_.empty()) return true;
  if (net::PacketBurst* const packets = engine_.poll_packets(); packets != nullptr) {
    for (const auto& burst : bursts_) {
      if (&burst->packets != packets) continue;
      finish(*burst);
      free_.push_back(burst.get());
    }
    --under_way_;
  } else if (!received) {
    port_.rest();
  }
  return may_receive || under_way_ != 0;
}

void FrameWorker::begin(Burst& burst) {
  free_.pop_back();
  burst.packets.count = burst.buffer.count;
  burst.packets.input_bytes = burst.buffer.used;
  burst.packets.frame_room = burst.buffer.frame_room;
  burst.packets.slot_bytes = burst.buffer.peer_slot_bytes;
  burst.packets.rung_by_peer = burst.buffer.peer_slot_bytes != 0;
  burst.packets.input = burst.buffer.data;
  burst.packets.slots = burst.packets.rung_by_peer ? nullptr : burst.buffer.slots;
  const MutableBytes of_port = port_.reply_memory(burst.buffer.number);
  burst.seen_replies = of_port.size != 0 ? of_port : burst.replies;
  burst.packets.replies = burst.seen_replies.data;
  burst.packets.reply_bytes = static_cast<uint32_t>(burst.seen_replies.size);
  if (on_gpu_ != nullptr) {
    burst.packets.input = on_gpu_;
    if (of_port.size != 0) burst.packets.replies = on_gpu_ + (of_port.data - port_.memory().data);
  }
  ++under_way_;
  engine_.submit_packets(&burst.packets);
  if (burst.packets.rung_by_peer) port_.wait_for_ring(burst.buffer, burst.packets.doorbell);
}

void FrameWorker::finish(Burst& burst) {
  burst.packets.input = burst.buffer.data;
  burst.packets.replies = burst.seen_replies.data;
  replies_.clear();
  passed_on_.clear();
  if (burst.packets.rung_by_peer) burst.packets.count = port_.peer_frames(burst.buffer);
  for (uint32_t begin = 0; begin < burst.packets.count; begin += kRepliesAtOnce) {
    const uint32_t count = std::min(burst.packets.count - begin, kRepliesAtOnce);
    if (!send_beside(burst, begin, count)) send_each(burst, begin, count);
  }
  port_.counters().replies_dropped.add(burst.packets.replies_dropped);
  if (!passed_on_.empty()) {
    port_.pass_on(passed_on_.data(), static_cast<uint32_t>(passed_on_.size()));
  }
  port_.take_back(burst.buffer);
}

// Sends the usual replies: each is one frame beside its request, and short enough for any source
// (--udp-amplification). False: one is not such a reply, and none was sent.
bool FrameWorker::send_beside(const Burst& burst, uint32_t begin, uint32_t count) {
  if (burst.packets.frame_room == 0) return false;
  const io::RepliesBeside replies = {burst.buffer.number, burst.packets.results, begin, count,
                                     short_reply_max_};
  if (!port_.send_beside(replies)) return false;
  port_.counters().requests.add(count);
  return true;
}

void FrameWorker::send_each(const Burst& burst, uint32_t begin, uint32_t count) {
  for (uint32_t i = begin; i < begin + count; ++i) {
    if (!add_short_reply(burst, i)) finish_packet(burst, i);
    if (replies_.size() >= kRepliesAtOnce) send_replies(burst);
  }
  send_replies(burst);
}

void FrameWorker::send_replies(const Burst& burst) {
  if (replies_.empty()) return;
  port_.send(burst.buffer.number, replies_.data(), static_cast<uint32_t>(replies_.size()));
  replies_.clear();
}

// The usual reply: one frame, short enough for any source (--udp-amplification). False: it is
// another one.
bool FrameWorker::add_short_reply(const Burst& burst, uint32_t packet) {
  const net::PacketResult result = burst.packets.results[packet];
  const uint32_t room = burst.packets.frame_room;
  const uint32_t size = result.size();
  if (size == 0 || size > short_reply_max_) return false;
  const bool is_beside = result.is_beside(room);
  const uint8_t* const begin = is_beside ? burst.packets.frame(packet).data : burst.packets.replies;
  replies_.push_back({{begin + result.without_beside(room).offset(), size},
                      burst.times_ns[packet],
                      packet,
                      is_beside});
  port_.counters().requests.add(1);
  return true;
}

void FrameWorker::finish_packet(const Burst& burst, uint32_t packet) {
  io::FrameCounters& counters = port_.counters();
  const net::PacketResult result = burst.packets.results[packet];
  if (result.state() == net::PacketState::kDone) {
    counters.requests.add(1);
    add_reply(burst, packet);
    return;
  }
  WC_ASSERT(result.state() == net::PacketState::kDropped);
  switch (result.verdict()) {
    case net::PacketVerdict::kRequest:
      return counters.malformed.add(1);
    case net::PacketVerdict::kTruncated:
      return counters.truncated.add(1);
    case net::PacketVerdict::kBadChecksum:
      return counters.bad_checksum.add(1);
    case net::PacketVerdict::kNotForUs:
      counters.not_for_us.add(1);
      break;
    case net::PacketVerdict::kFragment:
      counters.fragments.add(1);
      break;
    case net::PacketVerdict::kUnsupported:
    case net::PacketVerdict::kExtensions:
      counters.unsupported.add(1);
      break;
  }
  passed_on_.push_back(burst.packets.frame(packet));
}

void FrameWorker::add_reply(const Burst& burst, uint32_t packet) {
  const net::ReplyFrames reply(burst.packets, packet);
  if (reply.count() == 0) return;
  if (!permits(burst.packets.frame(packet), reply)) {
    return port_.counters().replies_amplified.add(1);
  }
  for (uint32_t i = 0; i < reply.count(); ++i) {
    replies_.push_back({reply[i], burst.times_ns[packet], packet, reply.is_beside()});
  }
}

// Whether the reply may be sent. A source address may be forged, so a reply to it is limited by the
// size of the request. Reads the request only if the reply is too long for the shortest one.
bool FrameWorker::permits(Bytes request, const net::ReplyFrames& reply) const {
  uint64_t bytes = 0;  // a bound on the UDP payloads
  for (uint32_t i = 0; i < reply.count(); ++i) bytes += reply[i].size;
  if (guard_.permits_to_all(kRequestPayloadMin, bytes)) return true;
  const net::Packet packet = net::packet_of_request(request);
  bytes -= uint64_t{reply.count()} * net::reply_headers_size(packet);
  return guard_.permits(source_of(request, packet), packet.payload_size, bytes);
}

}  // namespace warpcache::worker
