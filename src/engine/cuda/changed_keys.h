// SPDX-License-Identifier: Apache-2.0
//
// The keys whose items a batch or a burst may change, where items of the store have copies
// (store/cuda/copy_guard.h): from begin() to end() there is no copy of such an item. The host reads
// the requests for it, as the device does.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/cuda/request_peek.h"
#include "engine/engine.h"
#include "net/packet_burst.h"
#include "protocol/framing/frame_types.h"
#include "store/cuda/copy_guard.h"

namespace warpcache::engine::cuda {

// Used by one thread.
class ChangedKeys {
 public:
  // `guard` outlives it. Memory is taken for `requests_max` requests.
  ChangedKeys(store::CopyGuard& guard, uint32_t requests_max);

  // Items have copies. If not, no other function is called.
  bool on() const { return guard_.on(); }

  // Before the batch or the burst begins. REQUIRES: end() was called for the last one; the frames
  // of a burst are in the host's memory.
  void begin(const Batch& batch);
  void begin(const net::PacketBurst& burst, uint16_t udp_port, const protocol::FrameLimits& limits);
  // Nothing of it runs any more; its replies have not been sent.
  void end();

 private:
  void add(const protocol::Frame& frame, uint8_t* input);

  store::CopyGuard& guard_;
  std::vector<uint32_t> rows_;  // of the guard
  RequestPeek peek_;
  Batch datagram_;  // of one Ethernet frame
};

}  // namespace warpcache::engine::cuda
