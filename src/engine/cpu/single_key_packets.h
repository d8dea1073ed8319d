// SPDX-License-Identifier: Apache-2.0
//
// The single-key fast path of the CPU engine (protocol/single_key): frames with the usual headers
// and one GET or one plain SET are answered from frame to frame, without messages, batches and
// reply pieces between. Requests move through a pipeline of four steps (parse; find the slot's
// cache line by the tags; find the item by the slot; execute), so that the memory accesses of one
// overlap with the work on others. Replies have the same bytes as those of the general path.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/host_packets.h"
#include "net/packet_burst.h"
#include "protocol/framing/frame_types.h"
#include "protocol/single_key/wide.h"
#include "request/read.h"
#include "request/state.h"

namespace warpcache::engine {

class SingleKeyPackets {
 public:
  SingleKeyPackets(const protocol::FrameLimits& limits, uint16_t udp_port);

  // Runs all packets of the burst in their order and writes their results; those that are not for
  // this path through `general` and `engine`. REQUIRES: `context` is the engine's, set for a batch;
  // its thread is outside an epoch.
  void run(const request::Context& context, net::PacketBurst& burst, Engine& engine,
           HostPackets& general);

 private:
  // Packets of an epoch at most: it keeps memory from being reused.
  static constexpr uint32_t kEpochPackets = 1024;
  // Requests between two steps: enough to cover a cache miss with work on others.
  static constexpr uint32_t kDistance = 8;
  static constexpr uint32_t kRing = 4 * kDistance;

  // Two cache lines.
  struct alignas(128) Pending {
    uint8_t* frame;
    uint32_t frame_bytes;
    uint32_t index;  // in the burst
    uint64_t hash;
    store::Candidate hint;
    bool is_set;
    protocol::SingleKeyGet get;  // either of these two
    protocol::SingleKeySet set;

    Bytes key() const {
      return {frame + protocol::kSingleKeyOffset, is_set ? set.key_size : get.key_size};
    }
  };

  // The arguments of run().
  struct Job {
    const request::Context& context;
    net::PacketBurst& burst;
    Engine& engine;
    HostPackets& general;
  };

  Pending& pending(uint32_t number) { return ring_[number % kRing]; }
  void run_part(Job& job, uint32_t begin, uint32_t end);
  // The second and the third step of a request.
  static void prefetch_slot(const store::StoreRef& store, Pending& pending) {
    store.prefetch_slot(pending.hash, pending.hint);
  }
  static void prefetch_item(const store::StoreRef& store, Pending& pending) {
    store.prefetch_item(pending.hash, pending.hint);
  }
  void finish_pending(Job& job);
  void finish(Job& job, uint32_t number);
  void run_others(Job& job);
  // These return false, without effect, where the packet is not for this path.
  bool parse(MutableBytes frame, Pending& pending) const;
  bool answer_get(const request::Context& context, net::PacketBurst& burst, const Pending& pending);
  bool answer_set(const request::Context& context, net::PacketBurst& burst, const Pending& pending);

  // Where the reply of `bytes` may go; null: there is no space.
  uint8_t* space_for(const net::PacketBurst& burst, const Pending& pending, uint32_t bytes) const;
  // The reply of `bytes` lies at `reply`, which space_for() has returned for them.
  void take_space(net::PacketBurst& burst, const Pending& pending, uint8_t* reply, uint32_t bytes);

  protocol::FrameLimits limits_;
  uint16_t udp_port_;
  uint32_t reply_used_ = 0;  // bytes of the arena
  uint32_t parsed_ = 0;      // requests that have begun; the last ones are in ring_
  Pending ring_[kRing];
  std::vector<uint32_t> others_;  // indices of packets for the general path
};

}  // namespace warpcache::engine
