// SPDX-License-Identifier: Apache-2.0
#include "load/server_process.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace warpcache::load {

bool read_process(int pid, ProcessUse* out) {
  *out = ProcessUse();
  const std::filesystem::path folder = "/proc/" + std::to_string(pid);
  std::error_code error;
  uint64_t threads = 0;
  for (const auto& thread : std::filesystem::directory_iterator(folder / "task", error)) {
    // The time on a CPU, in ns: finer than the clock ticks of /proc/PID/stat.
    std::ifstream in(thread.path() / "schedstat");
    uint64_t cpu_ns = 0;
    if (in >> cpu_ns) ++threads;
    out->cpu_ns += cpu_ns;
  }
  std::ifstream status(folder / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) out->resident_kib = std::stoull(line.substr(6));
  }
  return !error && threads > 0;
}

}  // namespace warpcache::load
