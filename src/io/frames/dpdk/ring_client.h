// SPDX-License-Identifier: Apache-2.0
//
// The other side of --frames=ring, for a load generator: it plays a network device. See
// ring_layout.h.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "io/frames/dpdk/ring_door.h"
#include "io/frames/dpdk/ring_layout.h"
#include "io/frames/frame_port.h"

namespace warpcache::io {

// What the ports of a peer share.
struct RingPeer {
  std::string name;
  RingVisit visit;
  ring::Layout layout{1, 1};
  uint8_t* shared = nullptr;
};

// Waits until the server has made the rings of the first `queues` queues for this peer. Returns the
// error as text, or "".
std::string await_rings(const RingPeer& peer, uint32_t queues, uint32_t wait_ms);

// A queue of it. Frames are copied into the server's buffers; received ones stay there.
class RingClientPort final : public FramePort {
 public:
  // REQUIRES: the rings are there.
  RingClientPort(std::shared_ptr<RingPeer> peer, uint32_t queue);

  MutableBytes memory() const override { return memory_; }
  bool receive(FrameBuffer& buffer, int timeout_ms) override;
  void send(uint32_t burst, const TxFrame* frames, uint32_t count) override;
  void pass_on(const MutableBytes*, uint32_t) override {}
  void take_back(const FrameBuffer& buffer) override;
  void stop() override { stopped_.store(true, std::memory_order_relaxed); }
  std::string failure() const override { return failure_; }
  std::string describe() const override { return "ring " + peer_->name; }

  // For tests: gives the server a request as it is.
  bool send_slot(ring::Slot slot) { return ring::put(ring(ring::kRequests), &slot, 1) == 1; }
  bool return_slot(ring::Slot slot) { return ring::put(ring(ring::kSeen), &slot, 1) == 1; }
  bool take_empty(ring::Slot* slot) { return ring::take(ring(ring::kEmpty), slot, 1) == 1; }

 private:
  static constexpr uint32_t kAtOnce = 64;

  rte_ring* ring(ring::Ring kind) const { return peer_->layout.ring(peer_->shared, queue_, kind); }
  bool receive_now(FrameBuffer& buffer);
  void give_back();
  void prefetch_buffer(uint32_t offset) const;
  [[nodiscard]] bool take_buffers(uint32_t count);
  uint32_t transmit(const ring::Slot* slots, uint32_t count);

  const std::shared_ptr<RingPeer> peer_;
  const uint32_t queue_;
  const MutableBytes memory_;
  std::vector<ring::Slot> empty_;
  std::vector<ring::Slot> seen_;  // that have not gone back
  std::atomic<bool> stopped_{false};
  std::string failure_;
};

}  // namespace warpcache::io
