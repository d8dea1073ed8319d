// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/changed_keys.h"

#include "engine/datagram.h"
#include "net/packet.h"
#include "protocol/framing/get_line.h"
#include "protocol/framing/udp_frame.h"
#include "request/stages.h"

namespace warpcache::engine::cuda {

namespace {

using protocol::Frame;
using protocol::FrameKind;

// A read may make an item, and may change times and marks of one.
bool may_change(const protocol::Request& request) {
  constexpr uint32_t kChanges = protocol::kTouchBit | protocol::kVivify | protocol::kRecache;
  return request::acts_on_key(request.op) &&
         (request.op != protocol::Op::kGet || (request.bits & kChanges) != 0);
}

bool is_read(const Frame& frame) {
  return frame.kind == FrameKind::kTextKey && (frame.detail & protocol::kKeyOfGat) == 0;
}

}  // namespace

ChangedKeys::ChangedKeys(store::CopyGuard& guard, uint32_t requests_max) : guard_(guard) {
  if (!on()) return;
  rows_.reserve(requests_max);
  datagram_.frames.reserve(kDatagramFramesMax);
  datagram_.entries.reserve(1);
}

void ChangedKeys::begin(const Batch& batch) {
  WC_ASSERT(rows_.empty());
  for (const Frame& frame : batch.frames) add(frame, batch.input);
}

void ChangedKeys::begin(const net::PacketBurst& burst, uint16_t udp_port,
                        const protocol::FrameLimits& limits) {
  WC_ASSERT(rows_.empty() && !burst.on_device && !burst.rung_by_peer);
  datagram_.input = burst.input;
  for (uint32_t i = 0; i < burst.count; ++i) {
    const Bytes frame = burst.frame(i);
    net::Packet packet;
    if (net::parse_packet_headers(frame, udp_port, packet) != net::PacketVerdict::kRequest) {
      continue;
    }
    const Bytes payload = frame.sub(packet.payload_offset, packet.payload_size);
    if (payload.size <= protocol::kUdpHeaderSize) continue;
    const Bytes message = payload.from(protocol::kUdpHeaderSize);
    if (protocol::is_get_line(message)) continue;
    datagram_.frames.clear();
    datagram_.entries.clear();
    BatchEntry entry;
    const auto offset = static_cast<uint32_t>(message.data - burst.input);
    (void)append_datagram(datagram_, limits, offset, static_cast<uint32_t>(message.size), entry);
    for (const Frame& part : datagram_.frames) add(part, burst.input);
  }
}

void ChangedKeys::end() {
  for (const uint32_t row : rows_) guard_.end_change(row);
  rows_.clear();
}

void ChangedKeys::add(const Frame& frame, uint8_t* input) {
  if (is_read(frame)) return;
  protocol::Request request;
  const uint8_t* const base = peek_.parse(frame, input, request);
  if (!may_change(request)) return;
  rows_.push_back(guard_.begin_change({base + request.key_offset, request.key_size}));
}

}  // namespace warpcache::engine::cuda
