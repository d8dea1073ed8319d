// SPDX-License-Identifier: Apache-2.0
#include "io/ucx/ucx_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace warpcache::io {
namespace {

// Beside the program, where a build puts it, or where a package does.
std::vector<std::filesystem::path> module_places() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = program.parent_path();
  return {folder / kUcxModule, folder.parent_path() / "lib" / "warpcache" / kUcxModule};
}

}  // namespace

std::string open_ucx_ports(const UcxSettings& settings,
                           std::vector<std::unique_ptr<AmPort>>* ports) {
  for (const std::filesystem::path& place : module_places()) {
    std::error_code error;
    if (!std::filesystem::exists(place, error)) continue;
    // UCX reads these when it is loaded. Its own handlers of signals would replace the server's,
    // and its warnings are about what the server handles: peers that end.
    (void)setenv("UCX_HANDLE_ERRORS", "none", 0);
    (void)setenv("UCX_LOG_LEVEL", "fatal", 0);
    // Never closed: UCX has a thread, and the ports' code lies in it.
    void* const module = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) return std::string("loading its module: ") + dlerror();
    const auto open = reinterpret_cast<decltype(&warpcache_open_ucx_ports)>(
        dlsym(module, "warpcache_open_ucx_ports"));
    if (open == nullptr) return std::string("loading its module: ") + dlerror();
    std::string failure;
    open(settings, ports, &failure);
    return failure;
  }
  return std::string("this server was built without UCX (there is no ") + kUcxModule + ")";
}

}  // namespace warpcache::io
