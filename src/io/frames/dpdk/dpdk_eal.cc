// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/dpdk_eal.h"

#include <fcntl.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_memory.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "io/unique_fd.h"

namespace warpcache::io {
namespace {

// What DPDK logs meanwhile, for an error's text.
class LogCapture {
 public:
  LogCapture() : stream_(open_memstream(&text_, &size_)) {
    if (stream_ != nullptr) (void)rte_openlog_stream(stream_);
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  ~LogCapture() {
    (void)rte_openlog_stream(nullptr);
    if (stream_ != nullptr) (void)std::fclose(stream_);
    std::free(text_);
  }
  // In one line.
  std::string text() {
    if (stream_ == nullptr) return "";
    (void)std::fflush(stream_);
    std::string line(text_, size_);
    while (!line.empty() && line.back() == '\n') line.pop_back();
    for (char& letter : line) {
      if (letter == '\n') letter = ';';
    }
    return line;
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* stream_;
};

// Memory in free huge pages of 2 MB, without those that others have reserved.
uint64_t free_huge_megabytes() {
  const std::string folder = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  uint64_t free = 0;
  uint64_t reserved = 0;
  std::ifstream(folder + "free_hugepages") >> free;
  std::ifstream(folder + "resv_hugepages") >> reserved;
  return 2 * (free - std::min(free, reserved));
}

// Where file systems of huge pages are mounted.
std::vector<std::filesystem::path> huge_folders() {
  std::ifstream mounts("/proc/mounts");
  std::vector<std::filesystem::path> found;
  std::string device;
  std::string folder;
  std::string type;
  std::string rest;
  while (mounts >> device >> folder >> type && std::getline(mounts, rest)) {
    if (type == "hugetlbfs") found.emplace_back(folder);
  }
  return found;
}

// Of all processes of a prefix: what rte_eal_get_runtime_dir() says once DPDK has begun.
std::filesystem::path runtime_folder(const std::string& prefix) {
  const char* folder = std::getenv("RUNTIME_DIRECTORY");
  if (folder == nullptr && getuid() == 0) folder = "/var/run";
  if (folder == nullptr) folder = std::getenv("XDG_RUNTIME_DIR");
  return std::filesystem::path(folder == nullptr ? "/tmp" : folder) / "dpdk" / prefix;
}

// Those whose names have `part`; after a number in it no further digit follows.
void remove_files_in(const std::filesystem::path& folder, const std::string& part) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename().string();
    const size_t at = name.find(part);
    if (at == std::string::npos) continue;
    const size_t after = at + part.size();
    const bool goes_on = after < name.size() && name[after] >= '0' && name[after] <= '9';
    if (!goes_on || part.back() == '_') {
      found.push_back(file->path());
    }
  }
  for (const std::filesystem::path& path : found) (void)std::filesystem::remove(path, error);
}

std::string error_text(const char* what, LogCapture& log) {
  const std::string said = log.text();
  return std::string(what) + ": " + rte_strerror(rte_errno) +
         (said.empty() ? "" : " (" + said + ")");
}

bool huge_pages = false;

// Of memory that DPDK's processes share, and what was there.
struct Piece {
  uint8_t* data;
  std::vector<uint8_t> copy;
};
std::vector<Piece> remembered;

// DPDK's own data of all processes: its heap and locks.
Piece map_config() {
  const std::string path = std::string(rte_eal_get_runtime_dir()) + "/config";
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat facts = {};
  if (!file.valid() || fstat(file.get(), &facts) != 0) return {};
  const auto size = static_cast<size_t>(facts.st_size);
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return {};
  auto* const bytes = static_cast<uint8_t*>(data);
  return {bytes, {bytes, bytes + size}};
}

// The calling thread keeps its CPUs.
std::string initialize(std::vector<std::string> words) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  (void)sched_getaffinity(0, sizeof cpus, &cpus);
  size_t first = 0;
  while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &cpus)) ++first;
  words.insert(words.begin(), {"warpcached", "--no-telemetry", "--log-level=*:error", "--lcores",
                               "0@" + std::to_string(first)});
  std::vector<char*> arguments;
  arguments.reserve(words.size());
  for (std::string& word : words) arguments.push_back(word.data());
  LogCapture log;
  const int result = rte_eal_init(static_cast<int>(arguments.size()), arguments.data());
  // It has bound this thread, whose children would inherit that.
  (void)sched_setaffinity(0, sizeof cpus, &cpus);
  return result < 0 ? error_text("starting DPDK", log) : "";
}

// What both kinds of processes must say alike.
std::vector<std::string> shared_words(const std::string& prefix, const char* kind) {
  return {"--file-prefix=" + prefix, std::string("--proc-type=") + kind, "--single-file-segments",
          "--iova-mode=va", "--no-pci"};
}

}  // namespace

std::string start_dpdk(uint32_t megabytes, bool is_virtual) {
  static bool started = false;
  if (started) return "";
  huge_pages = free_huge_megabytes() >= megabytes;
  std::vector<std::string> words = {"-m", std::to_string(megabytes)};
  const std::string prefix = "warpcached" + std::to_string(getpid());
  words.push_back("--file-prefix=" + prefix);
  if (is_virtual) words.push_back("--iova-mode=va");
  if (huge_pages) {
    words.insert(words.end(), {"--in-memory", "--single-file-segments"});
  } else {
    words.insert(words.end(), {"--no-huge", "--no-shconf", "--single-file-segments"});
  }
  std::string failure = initialize(std::move(words));
  // Other processes do not attach to this one. Its folder would stay behind when it is killed. The
  // folder around it stays: another process of DPDK's may be about to make its own there.
  std::error_code error;
  (void)std::filesystem::remove_all(runtime_folder(prefix), error);
  if (!failure.empty()) return failure;
  // Attempts to connect, and messages to other processes that there are not, are not worth a line.
  (void)rte_log_set_level_pattern("pmd.net.memif", RTE_LOG_CRIT);
  (void)rte_log_set_level_pattern("pmd.net.tap", RTE_LOG_CRIT);
  started = true;
  return "";
}

std::string shared_dpdk_prefix(const std::string& name) { return "warpcache-ring-" + name; }

std::string start_shared_dpdk(const std::string& prefix, uint32_t megabytes) {
  remove_shared_dpdk(prefix);
  if (huge_folders().empty()) {
    return "it needs a file system of huge pages: mount -t hugetlbfs none /dev/hugepages";
  }
  if (const uint64_t free = free_huge_megabytes(); free < megabytes) {
    return "it needs " + std::to_string(megabytes) + " MB in huge pages of 2 MB, and " +
           std::to_string(free) + " MB are free: raise /proc/sys/vm/nr_hugepages";
  }
  huge_pages = true;
  std::vector<std::string> words = shared_words(prefix, "primary");
  words.insert(words.end(), {"-m", std::to_string(megabytes)});
  std::string failure = initialize(std::move(words));
  if (!failure.empty()) remove_shared_dpdk(prefix);
  return failure;
}

std::string join_shared_dpdk(const std::string& prefix) {
  huge_pages = true;
  return initialize(shared_words(prefix, "secondary"));
}

void remove_shared_dpdk(const std::string& prefix) {
  std::error_code error;
  for (const std::filesystem::path& folder : huge_folders())
    remove_files_in(folder, prefix + "map_");
  (void)std::filesystem::remove_all(runtime_folder(prefix), error);
}

void remember_shared_dpdk(const void* zone, uint64_t zone_bytes) {
  const auto* const begin = static_cast<const uint8_t*>(zone);
  remembered.clear();
  remembered.push_back(map_config());
  struct Walk {
    const uint8_t* begin;
    const uint8_t* end;
  } walk = {begin, begin + zone_bytes};
  (void)rte_memseg_walk(
      [](const rte_memseg_list*, const rte_memseg* segment, void* argument) {
        const auto& kept = *static_cast<const Walk*>(argument);
        auto* const data = static_cast<uint8_t*>(segment->addr);
        const bool in_zone = data >= kept.begin && data + segment->len <= kept.end;
        if (!in_zone) remembered.push_back({data, {data, data + segment->len}});
        return 0;
      },
      &walk);
}

void forget_secondary(int process) {
  for (const Piece& piece : remembered) {
    if (piece.data != nullptr) std::memcpy(piece.data, piece.copy.data(), piece.copy.size());
  }
  remove_files_in(rte_eal_get_runtime_dir(), "_" + std::to_string(process));
}

bool dpdk_has_huge_pages() { return huge_pages; }

std::string add_dpdk_device(const std::string& device, uint16_t* number) {
  LogCapture log;
  if (const int result = rte_dev_probe(device.c_str()); result < 0) {
    rte_errno = -result;
    return error_text("opening the device", log);
  }
  rte_dev_iterator iterator;
  uint16_t found = RTE_MAX_ETHPORTS;
  RTE_ETH_FOREACH_MATCHING_DEV(found, device.substr(0, device.find(',')).c_str(), &iterator) {
    *number = found;
    rte_eth_iterator_cleanup(&iterator);
    return "";
  }
  return "opening the device: it is no network device";
}

}  // namespace warpcache::io
