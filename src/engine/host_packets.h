// SPDX-License-Identifier: Apache-2.0
//
// Ethernet frames whose headers the host reads and writes: on the CPU engine those that
// single_key_packets.h does not take; on a GPU those that its kernel leaves to the host. Their
// messages run as a batch of datagrams.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "engine/engine.h"
#include "net/packet.h"
#include "protocol/framing/frame_types.h"

namespace warpcache::engine {

class HostPackets {
 public:
  // `input`: memory of Engine::input_memory(), to which messages are copied; empty: the engine
  // reads them where the burst has them.
  HostPackets(const protocol::FrameLimits& limits, uint16_t udp_port, MutableBytes input);

  // Runs packets through `engine` and writes their results and replies. The reply arena is used up
  // to `reply_used` bytes; replies without space are dropped and counted. Returns up to where it is
  // used then. Ends: each batch answers or drops at least one packet. REQUIRES: the engine has no
  // batch; all indices in `packets` are below burst.count.
  uint32_t run(Engine& engine, net::PacketBurst& burst, const std::vector<uint32_t>& packets,
               uint32_t reply_used);
  // The same for all packets of the burst.
  void run_all(Engine& engine, net::PacketBurst& burst);

 private:
  // A packet of the batch.
  struct Running {
    uint32_t index;  // in the burst
    net::Packet packet;
    uint16_t request_id;
  };

  template <typename IndexOf>
  void run_each(Engine& engine, net::PacketBurst& burst, uint32_t count, IndexOf index_of);
  bool add(net::PacketBurst& burst, uint32_t index);
  void run_batch(Engine& engine, net::PacketBurst& burst);
  void answer(net::PacketBurst& burst, const Running& running, const BatchEntry& entry);

  protocol::FrameLimits limits_;
  uint16_t udp_port_;
  MutableBytes input_;
  uint32_t input_used_ = 0;
  uint32_t reply_used_ = 0;
  Batch batch_;
  std::vector<Running> running_;   // by entry of the batch
  std::vector<uint32_t> waiting_;  // had no reply space: indices in the burst
};

}  // namespace warpcache::engine
