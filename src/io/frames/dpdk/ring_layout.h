// SPDX-License-Identifier: Apache-2.0
//
// Memory that the two sides of --frames=ring share: buffers of frames, and four of DPDK's rings for
// each pair of queues. The server plays the driver of a network device, and its peer the device: it
// gets empty buffers, fills them with requests and gives them back, and gets replies where the
// server's engine has written them. Nothing is copied between the two.
//
//   header | rings of queue 0, of queue 1, ... | memory of port 0 | of port 1 | ...
//
// A port, which is one of the server's threads, has queue n and every ports-th after it. Its memory
// holds the buffers of its queues, then blocks for replies. All is found by offsets, so the sides
// may have the memory at different addresses. Each ring has one writer and one reader.
#pragma once

#include <rte_ring.h>
#include <rte_ring_elem.h>

#include <atomic>
#include <cstdint>

#include "base/bits.h"
#include "base/bytes.h"
#include "io/frames/dpdk/dpdk_ports.h"
#include "io/frames/frame_port.h"
#include "net/packet_burst.h"

namespace warpcache::io::ring {

inline constexpr uint64_t kMagic = 0x32676e69726377;  // "wcring2"
inline constexpr uint32_t kQueuesMax = 64;
inline constexpr uint32_t kSlots = 2048;                 // of a ring; it holds one fewer
inline constexpr uint32_t kBuffers = kDpdkQueueBuffers;  // of a queue
inline constexpr uint32_t kFrameRoom = 2048;             // the longest frame
// Of a buffer. No power of two: frames would share few of a cache's sets.
inline constexpr uint32_t kBufferBytes = kFrameRoom + 128;
inline constexpr uint32_t kReplyBlocks = kFrameBurstsMax + 2;
inline constexpr uint32_t kReplyBlockBytes = 4u << 20;
inline constexpr uint64_t kPage = uint64_t{2} << 20;

// What the rings hold: a piece of the port's memory.
using Slot = net::PacketSlot;
static_assert(sizeof(Slot) == 8);

enum Ring : uint32_t {
  kEmpty,     // server to peer: buffers to be filled
  kRequests,  // peer to server
  kReplies,   // server to peer
  kSeen,      // peer to server: replies that it has read
  kRings,
};

struct alignas(64) QueueState {
  std::atomic<uint64_t> ready;   // the peer for which the server has made the rings
  std::atomic<uint64_t> missed;  // frames that the peer had no buffer for, or that were too long
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct Header {
  uint64_t magic;
  uint32_t queues;
  uint32_t ports;
  QueueState states[kQueuesMax];
};

// Sizes and places. REQUIRES: 0 < ports <= queues <= kQueuesMax.
class Layout {
 public:
  Layout(uint32_t queues, uint32_t ports) : queues_(queues), ports_(ports) {
    const auto bytes = static_cast<uint64_t>(rte_ring_get_memsize_elem(sizeof(Slot), kSlots));
    ring_bytes_ = rounded_up<uint64_t>(bytes, alignof(Header));
  }

  uint32_t queues() const { return queues_; }
  uint32_t ports() const { return ports_; }
  uint32_t port_of(uint32_t queue) const { return queue % ports_; }
  uint32_t buffers() const { return divided_up(queues_, ports_) * kBuffers; }  // of a port
  uint64_t buffer_bytes() const { return rounded_up(uint64_t{buffers()} * kBufferBytes, kPage); }
  uint64_t port_bytes() const { return buffer_bytes() + uint64_t{kReplyBlocks} * kReplyBlockBytes; }
  uint64_t bytes() const { return head_bytes() + ports_ * port_bytes(); }

  static Header& header(uint8_t* shared) { return *reinterpret_cast<Header*>(shared); }
  rte_ring* ring(uint8_t* shared, uint32_t queue, Ring kind) const {
    return reinterpret_cast<rte_ring*>(shared + sizeof(Header) +
                                       (uint64_t{queue} * kRings + kind) * ring_bytes_);
  }
  MutableBytes port_memory(uint8_t* shared, uint32_t port) const {
    return {shared + head_bytes() + port * port_bytes(), port_bytes()};
  }

 private:
  uint64_t head_bytes() const {
    return rounded_up(sizeof(Header) + uint64_t{queues_} * kRings * ring_bytes_, kPage);
  }

  uint32_t queues_;
  uint32_t ports_;
  uint64_t ring_bytes_ = 0;
};

// Each moves as many as the ring takes or has, and returns how many.
inline uint32_t put(rte_ring* to, const Slot* slots, uint32_t count) {
  return rte_ring_sp_enqueue_burst_elem(to, slots, sizeof(Slot), count, nullptr);
}
inline uint32_t take(rte_ring* from, Slot* slots, uint32_t count) {
  return rte_ring_sc_dequeue_burst_elem(from, slots, sizeof(Slot), count, nullptr);
}

}  // namespace warpcache::io::ring
