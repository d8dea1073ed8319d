// SPDX-License-Identifier: Apache-2.0
#include "io/ucx/ucx_module.h"

#include <cstdlib>

#include "io/module.h"

namespace warpcache::io {

std::string open_ucx_ports(const UcxSettings& settings,
                           std::vector<std::unique_ptr<AmPort>>* ports) {
  // UCX reads these when it is loaded. Its own handlers of signals would replace the server's, and
  // its warnings are about what the server handles: peers that end.
  (void)setenv("UCX_HANDLE_ERRORS", "none", 0);
  (void)setenv("UCX_LOG_LEVEL", "fatal", 0);
  // The store has its memory already. UCX's list of CUDA's memory has only what is allocated after
  // UCX was loaded, and it takes the rest for the host's; without the list it asks the driver.
  if (std::getenv("WARPCACHE_UCX_GPU") != nullptr) (void)setenv("UCX_MEMTYPE_CACHE", "n", 0);
  std::string failure;
  void* const open = load_from_module(kUcxModule, "warpcache_open_ucx_ports", "UCX", &failure);
  if (open == nullptr) return failure;
  reinterpret_cast<decltype(&warpcache_open_ucx_ports)>(open)(settings, ports, &failure);
  return failure;
}

}  // namespace warpcache::io
