// SPDX-License-Identifier: Apache-2.0
//
// The interface that the cases are played on: takes Ethernet frames and gives reply frames.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "net/packet_types.h"

namespace warpcache::packets {

class Backend {
 public:
  virtual ~Backend() = default;

  // Runs commands of the text protocol, not as frames; returns all replies so far.
  virtual std::string set_up(const std::string& commands) = 0;
  virtual void add(Bytes frame) = 0;
  // Runs the added frames; returns the replies since the last call.
  virtual std::vector<std::string> run() = 0;
  virtual void advance(uint32_t seconds) = 0;
  // The number of frames with this verdict; and of those with kRequest that had no valid memcached
  // header.
  virtual uint64_t count(net::PacketVerdict verdict) const = 0;
  virtual uint64_t malformed() const = 0;
};

std::unique_ptr<Backend> make_cpu_backend(uint16_t udp_port);
// Null where there is no GPU. `persistent`: by a persistent kernel.
std::unique_ptr<Backend> make_gpu_backend(uint16_t udp_port, bool persistent);

}  // namespace warpcache::packets
