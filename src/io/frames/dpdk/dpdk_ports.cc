// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/dpdk_ports.h"

#include "io/module.h"

namespace warpcache::io {

std::string open_dpdk_ports(const DpdkSettings& settings,
                            std::vector<std::unique_ptr<FramePort>>* ports) {
  std::string failure;
  const auto open = reinterpret_cast<decltype(&warpcache_open_dpdk_ports)>(
      load_from_module(kDpdkModule, "warpcache_open_dpdk_ports", "DPDK", &failure));
  if (open != nullptr) open(settings, ports, &failure);
  return failure;
}

}  // namespace warpcache::io
