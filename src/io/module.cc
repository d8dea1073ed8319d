// SPDX-License-Identifier: Apache-2.0
#include "io/module.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>
#include <vector>

namespace warpcache::io {
namespace {

// Beside the program, where a build puts it, or where a package does.
std::vector<std::filesystem::path> places(const char* file) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = program.parent_path();
  return {folder / file, folder.parent_path() / "lib" / "warpcache" / file};
}

}  // namespace

void* load_from_module(const char* file, const char* name, const char* library, std::string* why) {
  for (const std::filesystem::path& place : places(file)) {
    std::error_code error;
    if (!std::filesystem::exists(place, error)) continue;
    // Never closed: its libraries may have threads, and the server keeps objects of its classes.
    void* const module = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const found = module == nullptr ? nullptr : dlsym(module, name);
    if (found == nullptr) *why = std::string("loading its module: ") + dlerror();
    return found;
  }
  *why = std::string("this server was built without ") + library + " (there is no " + file + ")";
  return nullptr;
}

}  // namespace warpcache::io
