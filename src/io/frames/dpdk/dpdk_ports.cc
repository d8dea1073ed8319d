// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/dpdk_ports.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace warpcache::io {
namespace {

// Beside the program, where a build puts it, or where a package does.
std::vector<std::filesystem::path> places() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = program.parent_path();
  return {folder / kDpdkModule, folder.parent_path() / "lib" / "warpcache" / kDpdkModule};
}

}  // namespace

std::string open_dpdk_ports(const DpdkSettings& settings,
                            std::vector<std::unique_ptr<FramePort>>* ports) {
  for (const std::filesystem::path& place : places()) {
    std::error_code error;
    if (!std::filesystem::exists(place, error)) continue;
    // Never closed: DPDK has threads, and the ports' code lies in it.
    void* const module = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) return std::string("loading its module: ") + dlerror();
    const auto open = reinterpret_cast<decltype(&warpcache_open_dpdk_ports)>(
        dlsym(module, "warpcache_open_dpdk_ports"));
    if (open == nullptr) return std::string("loading its module: ") + dlerror();
    std::string failure;
    open(settings, ports, &failure);
    return failure;
  }
  return std::string("this server was built without DPDK (there is no ") + kDpdkModule + ")";
}

}  // namespace warpcache::io
