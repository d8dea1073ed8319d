// SPDX-License-Identifier: Apache-2.0
//
// Opens the sides of --frames=ring: the server is DPDK's primary process, which has the memory in
// huge pages, and its peer a secondary one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/frames/dpdk/dpdk_ports.h"

namespace warpcache::io {

// As open_dpdk_ports(). REQUIRES: the settings name a ring.
std::string open_ring_ports(const DpdkSettings& settings,
                            std::vector<std::unique_ptr<FramePort>>* ports);

}  // namespace warpcache::io
