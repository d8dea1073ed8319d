// SPDX-License-Identifier: Apache-2.0
#include "options/doctor.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "options/process.h"

namespace warpcache {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = kKiB * kKiB;
// What a UDP socket of the server asks for.
constexpr uint64_t kUdpBufferBytes = 4 * kMiB;
constexpr uint64_t kSwappinessMax = 10;

class Examination {
 public:
  Examination(const Options& options, const Machine& machine)
      : options_(options), machine_(machine) {}

  std::vector<Finding> run() {
    look_at_memory();
    look_at_huge_pages();
    look_at_swap();
    look_at_descriptors();
    look_at_sockets();
    look_at_processors();
    look_at_kernel_tls();
    look_at_devices();
    return std::move(findings_);
  }

 private:
  void add(bool fine, std::string subject, std::string text, std::string command) {
    findings_.push_back({fine ? Finding::Kind::kOk : Finding::Kind::kMend, std::move(subject),
                         std::move(text), fine ? "" : std::move(command)});
  }
  void note(std::string subject, std::string text, std::string command) {
    findings_.push_back(
        {Finding::Kind::kNote, std::move(subject), std::move(text), std::move(command)});
  }

  // The text of a file without the line end; nullopt: there is none.
  std::optional<std::string> read(const std::string& path) const {
    std::ifstream file(machine_.root + path);
    if (!file) return std::nullopt;
    std::stringstream text;
    text << file.rdbuf();
    std::string read = text.str();
    while (!read.empty() && read.back() <= ' ') read.pop_back();
    return read;
  }
  bool has(const std::string& path) const {
    std::error_code error;
    return std::filesystem::exists(machine_.root + path, error);
  }
  bool has_entries(const std::string& path) const {
    std::error_code error;
    const std::filesystem::directory_iterator entries(machine_.root + path, error);
    return !error && entries != std::filesystem::directory_iterator();
  }
  std::optional<uint64_t> number(const std::string& path) const {
    const auto text = read(path);
    uint64_t value = 0;
    if (!text ||
        std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc())
      return std::nullopt;
    return value;
  }
  // A field of /proc/meminfo, in its unit.
  std::optional<uint64_t> meminfo(std::string_view name) const {
    const std::string text = read("/proc/meminfo").value_or("");
    const size_t at = text.find(std::string(name) + ":");
    if (at == std::string::npos) return std::nullopt;
    return std::strtoull(text.c_str() + at + name.size() + 1, nullptr, 10);
  }

  void look_at_memory() {
    const auto available_kib = meminfo("MemAvailable");
    if (!available_kib) return;
    const uint64_t available = *available_kib * kKiB;
    add(available >= options_.store.memory_bytes, "memory",
        fmt::format("{} MB are available, and -m asks for {} MB", available / kMiB,
                    options_.store.memory_bytes / kMiB),
        fmt::format("give -m {} or less", available / kMiB * 9 / 10));
    if (number("/proc/sys/vm/overcommit_memory") == 2u) {
      add(false, "overcommit", "the kernel gives no more than it has (vm.overcommit_memory=2)",
          "sysctl vm.overcommit_memory=0");
    }
  }

  void look_at_huge_pages() {
    if (!options_.store.huge_pages) return;
    const auto enabled = read("/sys/kernel/mm/transparent_hugepage/enabled");
    const bool given = enabled && enabled->find("[never]") == std::string::npos;
    add(given, "huge pages",
        given      ? "the kernel gives them"
        : !enabled ? "the kernel has none"
                   : "they are turned off",
        enabled ? "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
                : "use a kernel with transparent huge pages, or --no-huge-pages");
  }

  void look_at_swap() {
    if (meminfo("SwapTotal").value_or(0) == 0 || options_.process.lock_memory) return;
    const uint64_t swappiness = number("/proc/sys/vm/swappiness").value_or(0);
    add(swappiness <= kSwappinessMax, "swap",
        fmt::format("there is swap space, and vm.swappiness is {}", swappiness),
        "sysctl vm.swappiness=1, or start with -k");
  }

  void look_at_descriptors() {
    const uint64_t wanted = options_.server.connections_max + kDescriptorsBesideConnections;
    add(machine_.open_files_max >= wanted, "open files",
        fmt::format("a process may have {}, and -c {} needs {}", machine_.open_files_max,
                    options_.server.connections_max, wanted),
        fmt::format("ulimit -Hn {0}, or LimitNOFILE={0} in the unit", wanted));
    if (!options_.process.lock_memory) return;
    add(machine_.locked_bytes_max >= options_.store.memory_bytes, "locked memory",
        fmt::format("a process may lock {} MB", machine_.locked_bytes_max / kMiB),
        "ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit");
  }

  void look_at_sockets() {
    if (const auto most = number("/proc/sys/net/core/somaxconn")) {
      add(*most >= options_.listen.backlog, "backlog",
          fmt::format("{} connections may wait, and -b asks for {}", *most,
                      options_.listen.backlog),
          fmt::format("sysctl net.core.somaxconn={}", options_.listen.backlog));
    }
    if (options_.listen.udp.empty()) return;
    for (const char* const name : {"rmem_max", "wmem_max"}) {
      const auto most = number(std::string("/proc/sys/net/core/") + name);
      if (!most) continue;
      add(*most >= kUdpBufferBytes, "UDP buffers",
          fmt::format("net.core.{} is {}, and a burst may need {}", name, *most, kUdpBufferBytes),
          fmt::format("sysctl net.core.{}={}", name, kUdpBufferBytes));
    }
  }

  void look_at_processors() {
    add(options_.server.threads <= machine_.cpus, "processors",
        fmt::format("{} for {} threads", machine_.cpus, options_.server.threads),
        fmt::format("give -t {}", machine_.cpus));
    if (const auto governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")) {
      add(*governor == "performance", "frequency", "the governor is " + *governor,
          "cpupower frequency-set -g performance");
    }
    if (const auto clock =
            read("/sys/devices/system/clocksource/clocksource0/current_clocksource")) {
      const bool fast = *clock == "tsc" || *clock == "kvm-clock" || *clock == "arch_sys_counter";
      add(fast, "clock", "the kernel reads " + *clock,
          "boot with clocksource=tsc, if the processor's counter is stable");
    }
    if (has("/sys/devices/system/node/node1")) {
      note("memory nodes", "there are several; a server that stays on one is faster",
           "numactl --cpunodebind=0 --membind=0 warpcached ...");
    }
  }

  void look_at_kernel_tls() {
    if (!options_.tls.enabled || !options_.tls.kernel_tls) return;
    add(has("/sys/module/tls"), "kernel TLS",
        has("/sys/module/tls") ? "the module is loaded" : "the module is not loaded",
        "modprobe tls");
  }

  // What GPUs and DPDK need.
  void look_at_devices() {
    const bool driver = has("/proc/driver/nvidia/version");
    if (options_.server.engine == EngineChoice::kCuda) {
      add(driver, "GPU", driver ? "NVIDIA's driver is loaded" : "NVIDIA's driver is not loaded",
          "install it, then nvidia-smi; warpcached --selftest goes on from there");
    } else if (driver) {
      note("GPU", "there is one, which --engine=cuda would use", "warpcached --selftest");
    }
    const bool dpdk =
        std::any_of(options_.frames.begin(), options_.frames.end(), [](const FramesOptions& one) {
          return one.kind == FramesOptions::Kind::kDpdk || one.kind == FramesOptions::Kind::kRing;
        });
    if (!dpdk) return;
    add(meminfo("HugePages_Total").value_or(0) > 0, "reserved huge pages",
        fmt::format("{} are reserved; DPDK takes its memory from them",
                    meminfo("HugePages_Total").value_or(0)),
        "sysctl vm.nr_hugepages=512");
    const bool iommu = has_entries("/sys/class/iommu");
    add(iommu, "IOMMU", iommu ? "there is one" : "the kernel uses none; VFIO needs it",
        "boot with intel_iommu=on or amd_iommu=on, and iommu=pt");
  }

  const Options& options_;
  const Machine& machine_;
  std::vector<Finding> findings_;
};

}  // namespace

Machine this_machine() {
  Machine machine;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) machine.open_files_max = limit.rlim_max;
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) machine.locked_bytes_max = limit.rlim_max;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    machine.cpus = static_cast<uint32_t>(CPU_COUNT(&set));
  }
  return machine;
}

std::vector<Finding> examine(const Options& options, const Machine& machine) {
  return Examination(options, machine).run();
}

std::string findings_text(const std::vector<Finding>& findings) {
  constexpr const char* kWords[] = {"ok", "mend", "note"};
  std::string text;
  for (const Finding& finding : findings) {
    fmt::format_to(std::back_inserter(text), "{:<5} {}: {}\n",
                   kWords[static_cast<size_t>(finding.kind)], finding.subject, finding.text);
    if (!finding.command.empty()) text += "      > " + finding.command + "\n";
  }
  return text + (needs_mending(findings) ? "Some of this is to be mended.\n"
                                         : "Nothing is to be mended.\n");
}

bool needs_mending(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.kind == Finding::Kind::kMend; });
}

}  // namespace warpcache
