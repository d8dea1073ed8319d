// SPDX-License-Identifier: Apache-2.0
//
// For tests' own engines that take no Ethernet frames.
#pragma once

#include <string>

#include "base/assert.h"
#include "engine/engine.h"

namespace warpcache::engine {

class EngineWithoutPackets : public Engine {
 public:
  std::string open_packets(const PacketSettings&) override { return "it takes no frames"; }
  uint32_t packet_bursts() const override { return 0; }
  uint8_t* packet_memory(uint64_t) override { return nullptr; }
  std::string use_packet_memory(MutableBytes) override { return ""; }
  void submit_packets(net::PacketBurst*) override { WC_ASSERT(false); }
  net::PacketBurst* poll_packets() override { return nullptr; }
};

}  // namespace warpcache::engine
