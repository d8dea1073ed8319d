// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/ring_client.h"

#include <rte_pause.h>
#include <unistd.h>

#include <algorithm>

#include "base/mem.h"
#include "io/frames/dpdk/polling.h"

namespace warpcache::io {
namespace {

constexpr uint64_t kPatienceUs = 100;  // for a full ring, as a DpdkPort

}  // namespace

std::string await_rings(const RingPeer& peer, uint32_t queues, uint32_t wait_ms) {
  constexpr useconds_t kStepUs = 1000;
  const ring::Header& header = ring::Layout::header(peer.shared);
  if (header.magic != ring::kMagic) return "its server is of another version";
  uint32_t ms = 0;
  for (uint32_t queue = 0; queue < queues; ++queue) {
    while (header.states[queue].ready.load() != peer.visit.hello().peer) {
      if (!peer.visit.server_is_there()) return "its server has ended";
      if (ms++ > wait_ms) return "its server does not serve it";
      (void)usleep(kStepUs);
    }
  }
  return "";
}

RingClientPort::RingClientPort(std::shared_ptr<RingPeer> peer, uint32_t queue)
    : peer_(std::move(peer)),
      queue_(queue),
      memory_(peer_->layout.port_memory(peer_->shared, peer_->layout.port_of(queue))) {}

bool RingClientPort::receive_now(FrameBuffer& buffer) {
  ring::Slot slots[kAtOnce];
  uint32_t count = 0;
  uint64_t bytes = 0;
  do {
    count = ring::take(ring(ring::kReplies), slots,
                       std::min(buffer.frames_max - buffer.count, kAtOnce));
    seen_.insert(seen_.end(), slots, slots + count);
    for (uint32_t i = 0; i < count; ++i) {
      buffer.add_at(slots[i].offset, slots[i].size, 0);
      bytes += slots[i].size;
    }
    counters_.received.add(count);
  } while (count == kAtOnce && buffer.count < buffer.frames_max);
  counters_.received_bytes.add(bytes);
  return buffer.count != 0;
}

bool RingClientPort::receive(FrameBuffer& buffer, int timeout_ms) {
  const bool goes_on = poll_frames(
      stopped_, timeout_ms, [&] { return receive_now(buffer); },
      [this] {
        if (peer_->visit.server_is_there()) return;
        failure_ = "the server has ended";
        stop();
      });
  return goes_on;
}

// What the ring does not take goes back the next time.
void RingClientPort::give_back() {
  const uint32_t given =
      ring::put(ring(ring::kSeen), seen_.data(), static_cast<uint32_t>(seen_.size()));
  seen_.erase(seen_.begin(), seen_.begin() + given);
}

void RingClientPort::take_back(const FrameBuffer& /*buffer*/) {
  if (!seen_.empty()) give_back();
}

// A short frame has two lines.
void RingClientPort::prefetch_buffer(uint32_t offset) const {
  constexpr uint32_t kLine = 64;
  __builtin_prefetch(memory_.data + offset, 1);
  __builtin_prefetch(memory_.data + offset + kLine, 1);
}

// Has at least that many empty buffers, if the server has them in time.
bool RingClientPort::take_buffers(uint32_t count) {
  uint64_t deadline_us = 0;
  while (empty_.size() < count) {
    ring::Slot slots[kAtOnce];
    const uint32_t taken = ring::take(ring(ring::kEmpty), slots, kAtOnce);
    empty_.insert(empty_.end(), slots, slots + taken);
    if (taken != 0) continue;
    const uint64_t now = polling_now_us();
    if (deadline_us == 0) deadline_us = now + kPatienceUs;
    if (now >= deadline_us) return false;
    rte_pause();
  }
  return true;
}

uint32_t RingClientPort::transmit(const ring::Slot* slots, uint32_t count) {
  uint32_t sent = ring::put(ring(ring::kRequests), slots, count);
  const uint64_t deadline_us = sent == count ? 0 : polling_now_us() + kPatienceUs;
  while (sent < count && polling_now_us() < deadline_us) {
    rte_pause();
    sent += ring::put(ring(ring::kRequests), slots + sent, count - sent);
  }
  return sent;
}

void RingClientPort::send(uint32_t /*burst*/, const TxFrame* frames, uint32_t count) {
  ring::Slot slots[kAtOnce];
  uint32_t lost = 0;
  for (uint32_t at = 0; at < count; at += kAtOnce) {
    const uint32_t some = std::min(count - at, kAtOnce);
    (void)take_buffers(some);
    uint32_t ready = 0;
    uint64_t bytes = 0;
    // Its other side has read or written a buffer last: all are asked for before one is written.
    const uint32_t buffers = std::min(some, static_cast<uint32_t>(empty_.size()));
    const auto offset = [this](uint32_t number) {
      return empty_[empty_.size() - 1 - number].offset;
    };
    for (uint32_t i = 0; i < buffers; ++i) prefetch_buffer(offset(i));
    for (uint32_t i = at; i < at + some && ready < buffers; ++i) {
      const Bytes frame = frames[i].bytes;
      if (frame.size > ring::kFrameRoom) continue;
      slots[ready] = {offset(ready), static_cast<uint32_t>(frame.size)};
      mem_copy_often_short(memory_.data + slots[ready++].offset, frame.data, frame.size);
    }
    empty_.resize(empty_.size() - ready);
    const uint32_t sent = transmit(slots, ready);
    for (uint32_t i = 0; i < sent; ++i) bytes += slots[i].size;
    for (uint32_t i = sent; i < ready; ++i) empty_.push_back({slots[i].offset, 0});
    counters_.sent.add(sent);
    counters_.sent_bytes.add(bytes);
    lost += some - sent;
  }
  if (lost == 0) return;
  counters_.send_failed.add(lost);
  ring::Layout::header(peer_->shared).states[queue_].missed.fetch_add(lost);
}

}  // namespace warpcache::io
