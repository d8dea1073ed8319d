// SPDX-License-Identifier: Apache-2.0
//
// Ports of frames on a DPDK device, which share its pairs of queues. DPDK is needed only by who
// asks for such a port, so the code that uses it is a module that is loaded then (io/module.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/frames/frame_port.h"

namespace warpcache::io {

struct DpdkSettings {
  // A device as DPDK's own programs take it: 0000:3b:00.0, net_memif0,role=client, ...
  std::string device;
  uint32_t queues = 1;
  uint32_t threads = 1;  // ports; not more than there are queues
  // A TAP interface through which the kernel gets the frames that are not for the server, and from
  // which its own are sent; it has the device's MAC address. Empty: none.
  std::string kernel_interface;
  std::string kernel_address;  // added to it, as in 10.9.0.1/24; empty: none
  // The frames are in the memory of this one of the GPUs that DPDK knows; none: in the host's.
  std::optional<uint32_t> gpu;
  // Instead of a device: DPDK's rings in memory that two processes share, under this name. The
  // server makes them, and its peer uses them.
  std::string ring;
  bool is_ring_peer = false;
  uint32_t link_wait_ms = 0;  // wait at most so long for the other side; 0: do not wait
};

// Opens a device and appends a port for each thread. The ports of a device may run on different
// threads. Returns the error as text, or "".
std::string open_dpdk_ports(const DpdkSettings& settings,
                            std::vector<std::unique_ptr<FramePort>>* ports);

// Of a queue: the most frames of all bursts that are under way, and of the device's own rings.
inline constexpr uint32_t kDpdkQueueBuffers = 8192;

inline constexpr char kDpdkModule[] = "warpcached-dpdk.so";

}  // namespace warpcache::io

// The module's own function of that kind; `failure` is the error or "".
extern "C" void warpcache_open_dpdk_ports(
    const warpcache::io::DpdkSettings& settings,
    std::vector<std::unique_ptr<warpcache::io::FramePort>>* ports, std::string* failure);
