// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/ring_port.h"

#include <rte_pause.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "io/frames/dpdk/polling.h"

namespace warpcache::io {

RingPort::RingPort(std::shared_ptr<RingServer> server, uint32_t number)
    : server_(std::move(server)),
      number_(number),
      memory_(server_->layout.port_memory(server_->shared, number)),
      blocks_begin_(server_->layout.buffer_bytes()),
      next_queue_(number),
      at_(server_->layout.buffers(), At::kFree),
      missed_(server_->layout.queues()) {
  for (uint32_t buffer = server_->layout.buffers(); buffer-- != 0;) free_.push_back(buffer);
}

std::string RingPort::describe() const {
  std::string text = "ring " + server_->name + " queue " + std::to_string(number_);
  for (uint32_t queue = number_; (queue += server_->layout.ports()) < server_->layout.queues();) {
    text += ", " + std::to_string(queue);
  }
  return text;
}

void RingPort::free_buffer(uint32_t buffer) {
  at_[buffer] = At::kFree;
  free_.push_back(buffer);
}

// Another peer is there, or none: what the last one had is the server's again. It has ended, so
// nobody else uses the rings.
void RingPort::welcome(uint64_t peer) {
  peer_ = peer;
  for (uint32_t buffer = 0; buffer < at_.size(); ++buffer) {
    if (at_[buffer] == At::kPeerEmpty || at_[buffer] == At::kPeerFull) free_buffer(buffer);
  }
  for (Block& block : blocks_) block.at_peer = 0;
  if (peer == 0) return;
  const ring::Layout& layout = server_->layout;
  for (uint32_t queue = number_; queue < layout.queues(); queue += layout.ports()) {
    for (const ring::Ring kind : {ring::kEmpty, ring::kRequests, ring::kReplies, ring::kSeen}) {
      const int error = rte_ring_init(layout.ring(server_->shared, queue, kind), "warpcache",
                                      ring::kSlots, RING_F_SP_ENQ | RING_F_SC_DEQ);
      WC_ASSERT(error == 0);
    }
    offer(queue);
    missed_[queue] = 0;
    ring::QueueState& state = ring::Layout::header(server_->shared).states[queue];
    state.missed.store(0);
    state.ready.store(peer);
  }
}

// Gives the peer as many buffers as there are, and its ring takes.
void RingPort::offer(uint32_t queue) {
  rte_ring* const to = server_->layout.ring(server_->shared, queue, ring::kEmpty);
  ring::Slot slots[kAtOnce];
  while (!free_.empty()) {
    const auto wanted = static_cast<uint32_t>(std::min<size_t>(free_.size(), kAtOnce));
    for (uint32_t i = 0; i < wanted; ++i) slots[i] = slot_of(free_[free_.size() - 1 - i]);
    const uint32_t given = ring::put(to, slots, wanted);
    for (uint32_t i = 0; i < given; ++i) {
      at_[free_.back()] = At::kPeerEmpty;
      free_.pop_back();
    }
    if (given < wanted) return;
  }
}

// A reply that the peer has read, or that could not be sent. False: it has no such reply.
bool RingPort::take_from_peer(ring::Slot slot) {
  if (slot.offset < blocks_begin_) {
    const uint32_t buffer = slot.offset / ring::kBufferBytes;
    if (buffer >= at_.size() || at_[buffer] != At::kPeerFull) return false;
    free_buffer(buffer);
    return true;
  }
  const uint64_t block = (slot.offset - blocks_begin_) / ring::kReplyBlockBytes;
  if (block >= blocks_.size() || blocks_[block].at_peer == 0) return false;
  --blocks_[block].at_peer;
  return true;
}

void RingPort::take_seen(uint32_t queue) {
  rte_ring* const from = server_->layout.ring(server_->shared, queue, ring::kSeen);
  ring::Slot slots[kAtOnce];
  for (uint32_t bound = 0; bound < ring::kSlots; bound += kAtOnce) {
    const uint32_t count = ring::take(from, slots, kAtOnce);
    for (uint32_t i = 0; i < count; ++i) {
      if (!take_from_peer(slots[i])) counters_.receive_failed.add(1);
    }
    if (count < kAtOnce) return;
  }
}

// A request. False: the peer has no such buffer, or says that it is longer than a buffer is.
bool RingPort::add(ring::Slot slot, FrameBuffer& buffer) {
  const uint32_t number = slot.offset / ring::kBufferBytes;
  if (number >= at_.size() || slot.offset % ring::kBufferBytes != 0) return false;
  if (at_[number] != At::kPeerEmpty) return false;
  if (slot.size == 0 || slot.size > ring::kFrameRoom) {
    free_buffer(number);
    return false;
  }
  at_[number] = At::kServer;
  bursts_[buffer.number].buffers.push_back(number);
  buffer.add_at(slot.offset, slot.size, 0);
  return true;
}

bool RingPort::receive_from(uint32_t queue, FrameBuffer& buffer) {
  rte_ring* const from = server_->layout.ring(server_->shared, queue, ring::kRequests);
  ring::Slot slots[kAtOnce];
  uint32_t count = 0;
  uint64_t taken = 0;
  uint64_t bytes = 0;
  do {
    const uint32_t room = std::min(buffer.frames_max - buffer.count, kAtOnce);
    count = ring::take(from, slots, room);
    for (uint32_t i = 0; i < count; ++i) {
      const bool added = add(slots[i], buffer);
      taken += added ? 1 : 0;
      bytes += added ? slots[i].size : 0;
    }
    counters_.receive_failed.add(count - taken);
    counters_.received.add(taken);
    counters_.received_bytes.add(std::exchange(bytes, 0));
    taken = 0;
  } while (count == kAtOnce && buffer.count < buffer.frames_max);
  return buffer.count != 0;
}

bool RingPort::receive_now(FrameBuffer& buffer) {
  const uint64_t peer = server_->door.peer();
  if (peer != peer_) welcome(peer);
  if (peer == 0) return false;
  const ring::Layout& layout = server_->layout;
  for (uint32_t queue = number_; queue < layout.queues(); queue += layout.ports()) {
    const uint32_t asked = next_queue_;
    next_queue_ = asked + layout.ports() < layout.queues() ? asked + layout.ports() : number_;
    take_seen(asked);
    offer(asked);
    buffer.frame_room = ring::kBufferBytes;
    if (!receive_from(asked, buffer)) continue;
    bursts_[buffer.number].queue = asked;
    bursts_[buffer.number].peer = peer;
    return true;
  }
  return false;
}

bool RingPort::receive(FrameBuffer& buffer, int timeout_ms) {
  return poll_frames(
      stopped_, timeout_ms, [&] { return receive_now(buffer); }, [this] { now_and_then(); });
}

void RingPort::now_and_then() {
  const ring::Layout& layout = server_->layout;
  if (peer_ != 0 && peer_ == server_->door.peer()) {
    for (uint32_t queue = number_; queue < layout.queues(); queue += layout.ports()) {
      const uint64_t all = ring::Layout::header(server_->shared).states[queue].missed.load();
      if (all > missed_[queue]) {
        counters_.receive_missed.add(all - std::exchange(missed_[queue], all));
      }
    }
  }
  if (number_ != 0) return;
  const pid_t gone = server_->door.look();
  if (gone != 0 && server_->when_peer_leaves) server_->when_peer_leaves(gone);
}

MutableBytes RingPort::reply_memory(uint32_t burst) {
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].is_used || blocks_[i].at_peer != 0) continue;
    blocks_[i].is_used = true;
    bursts_[burst].block = i;
    return {memory_.data + blocks_begin_ + uint64_t{i} * ring::kReplyBlockBytes,
            ring::kReplyBlockBytes};
  }
  return {};
}

void RingPort::take_back(const FrameBuffer& buffer) {
  Burst& burst = bursts_[buffer.number];
  for (const uint32_t number : burst.buffers) {
    if (number != kNone) free_buffer(number);
  }
  burst.buffers.clear();
  const uint32_t block = std::exchange(burst.block, kNone);
  if (block != kNone) blocks_[block].is_used = false;
}

// Makes a frame the peer's: it stays where it is, or is copied to a buffer if it is not in the
// port's memory. Size 0: there is no buffer.
ring::Slot RingPort::slot_for(Burst& burst, const TxFrame& frame) {
  auto offset = static_cast<uint32_t>(frame.bytes.data - memory_.data);
  const auto size = static_cast<uint32_t>(frame.bytes.size);
  if (frame.is_beside) {
    at_[std::exchange(burst.buffers[frame.request], kNone)] = At::kPeerFull;
  } else if (burst.block != kNone) {
    ++blocks_[burst.block].at_peer;
  } else {
    WC_ASSERT(size <= ring::kBufferBytes);
    if (free_.empty()) return {};
    at_[free_.back()] = At::kPeerFull;
    offset = slot_of(free_.back()).offset;
    free_.pop_back();
    std::memcpy(memory_.data + offset, frame.bytes.data, size);
    counters_.copied_bytes.add(size);
  }
  return {offset, size};
}

// Waits a little for a full ring, as a DpdkPort.
uint32_t RingPort::transmit(uint32_t queue, const ring::Slot* slots, uint32_t count) {
  constexpr uint64_t kPatienceUs = 100;
  rte_ring* const to = server_->layout.ring(server_->shared, queue, ring::kReplies);
  uint32_t sent = ring::put(to, slots, count);
  if (sent == count) return sent;
  const uint64_t deadline_us = polling_now_us() + kPatienceUs;
  while (sent < count && polling_now_us() < deadline_us) {
    rte_pause();
    sent += ring::put(to, slots + sent, count - sent);
  }
  return sent;
}

// The peer that the burst has come from is there.
bool RingPort::has_peer_of(const Burst& burst) const {
  const bool is_of_another = !burst.buffers.empty() && burst.peer != peer_;
  return !is_of_another && peer_ != 0 && peer_ == server_->door.peer();
}

// Of the frames of these slots, all the peer's by now, takes back what cannot be sent.
void RingPort::send_slots(uint32_t queue, const ring::Slot* slots, uint32_t count) {
  const uint32_t sent = transmit(queue, slots, count);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < sent; ++i) bytes += slots[i].size;
  for (uint32_t i = sent; i < count; ++i) (void)take_from_peer(slots[i]);
  counters_.sent.add(sent);
  counters_.sent_bytes.add(bytes);
  counters_.send_failed.add(count - sent);
}

void RingPort::send(uint32_t burst, const TxFrame* frames, uint32_t count) {
  Burst& from = bursts_[burst];
  if (!has_peer_of(from)) return counters_.send_failed.add(count);
  ring::Slot slots[kAtOnce];
  for (uint32_t at = 0; at < count; at += kAtOnce) {
    const uint32_t some = std::min(count - at, kAtOnce);
    uint32_t ready = 0;
    for (uint32_t i = at; i < at + some; ++i) {
      const ring::Slot slot = slot_for(from, frames[i]);
      if (slot.size != 0) slots[ready++] = slot;
    }
    counters_.send_failed.add(some - ready);
    send_slots(from.queue, slots, ready);
  }
}

bool RingPort::send_beside(const RepliesBeside& replies) {
  Burst& from = bursts_[replies.burst];
  uint32_t* const buffers = from.buffers.data() + replies.first;
  ring::Slot slots[RepliesBeside::kBesideMax];
  for (uint32_t i = 0; i < replies.count; ++i) {
    const net::PacketResult result = replies.result(i);
    if (!replies.takes(result)) return false;
    const uint32_t offset = result.without_beside(ring::kBufferBytes).offset();
    slots[i] = {slot_of(buffers[i]).offset + offset, result.size()};
  }
  if (!has_peer_of(from)) {
    counters_.send_failed.add(replies.count);
    return true;
  }
  for (uint32_t i = 0; i < replies.count; ++i) {
    at_[std::exchange(buffers[i], kNone)] = At::kPeerFull;
  }
  send_slots(from.queue, slots, replies.count);
  return true;
}

}  // namespace warpcache::io
