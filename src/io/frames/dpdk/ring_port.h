// SPDX-License-Identifier: Apache-2.0
//
// The server's port of --frames=ring: see ring_layout.h. It gives the peer empty buffers, and takes
// back only what it has given: descriptors of anything else are counted and dropped.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/frames/dpdk/ring_door.h"
#include "io/frames/dpdk/ring_layout.h"
#include "io/frames/frame_port.h"

namespace warpcache::io {

// What the ports of a server share; the last one gives the memory back.
struct RingServer {
  RingServer(std::string name_, ring::Layout layout_) : name(std::move(name_)), layout(layout_) {}
  RingServer(const RingServer&) = delete;
  RingServer& operator=(const RingServer&) = delete;
  ~RingServer() {
    if (give_back) give_back();
  }

  std::string name;
  ring::Layout layout;
  uint8_t* shared = nullptr;  // zeros at the beginning
  RingDoor door;
  std::function<void()> give_back;              // the memory; may be empty
  std::function<void(pid_t)> when_peer_leaves;  // may be empty
};

class RingPort final : public FramePort {
 public:
  // `number`: of the port. REQUIRES: the server's door is open.
  RingPort(std::shared_ptr<RingServer> server, uint32_t number);

  MutableBytes memory() const override { return memory_; }
  bool receive(FrameBuffer& buffer, int timeout_ms) override;
  MutableBytes reply_memory(uint32_t burst) override;
  void send(uint32_t burst, const TxFrame* frames, uint32_t count) override;
  bool send_beside(const RepliesBeside& replies) override;
  void pass_on(const MutableBytes*, uint32_t) override {}
  void take_back(const FrameBuffer& buffer) override;
  void stop() override { stopped_.store(true, std::memory_order_relaxed); }
  std::string describe() const override;

 private:
  static constexpr uint32_t kAtOnce = 64;
  static constexpr uint32_t kNone = ~0u;

  // Of a buffer. What the peer has may be with it for ever.
  enum class At : uint8_t { kFree, kPeerEmpty, kServer, kPeerFull };
  struct Block {
    bool is_used = false;  // by the server
    uint32_t at_peer = 0;  // frames
  };
  struct Burst {
    std::vector<uint32_t> buffers;  // in the order of its frames; kNone: it is the peer's again
    uint64_t peer = 0;              // that it has come from
    uint32_t queue = 0;
    uint32_t block = kNone;
  };

  void welcome(uint64_t peer);
  bool receive_now(FrameBuffer& buffer);
  bool receive_from(uint32_t queue, FrameBuffer& buffer);
  void offer(uint32_t queue);
  void take_seen(uint32_t queue);
  [[nodiscard]] bool add(ring::Slot slot, FrameBuffer& buffer);
  [[nodiscard]] bool take_from_peer(ring::Slot slot);
  ring::Slot slot_for(Burst& burst, const TxFrame& frame);
  bool has_peer_of(const Burst& burst) const;
  void send_slots(uint32_t queue, const ring::Slot* slots, uint32_t count);
  uint32_t transmit(uint32_t queue, const ring::Slot* slots, uint32_t count);
  void free_buffer(uint32_t buffer);
  void now_and_then();
  ring::Slot slot_of(uint32_t buffer) const { return {buffer * ring::kBufferBytes, 0}; }

  const std::shared_ptr<RingServer> server_;
  const uint32_t number_;
  const MutableBytes memory_;
  const uint64_t blocks_begin_;  // in memory_
  uint64_t peer_ = ~uint64_t{0};
  uint32_t next_queue_;
  std::vector<At> at_;  // of each buffer
  std::vector<uint32_t> free_;
  std::array<Block, ring::kReplyBlocks> blocks_;
  std::array<Burst, kFrameBurstsMax> bursts_;
  std::vector<uint64_t> missed_;  // of each queue: as the peer has said last
  std::atomic<bool> stopped_{false};
};

}  // namespace warpcache::io
