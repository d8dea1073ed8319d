// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/dpdk_eal.h"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

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

// Memory in free huge pages of 2 MB.
uint64_t free_huge_megabytes() {
  std::ifstream file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  uint64_t pages = 0;
  file >> pages;
  return 2 * pages;
}

std::string error_text(const char* what, LogCapture& log) {
  const std::string said = log.text();
  return std::string(what) + ": " + rte_strerror(rte_errno) +
         (said.empty() ? "" : " (" + said + ")");
}

bool huge_pages = false;

}  // namespace

std::string start_dpdk(uint32_t megabytes) {
  static bool started = false;
  if (started) return "";
  huge_pages = free_huge_megabytes() >= megabytes;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  (void)sched_getaffinity(0, sizeof cpus, &cpus);
  size_t first = 0;
  while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &cpus)) ++first;
  std::vector<std::string> words = {"warpcached", "--no-telemetry", "--log-level=*:error"};
  words.insert(words.end(), {"--lcores", "0@" + std::to_string(first)});
  words.insert(words.end(), {"-m", std::to_string(megabytes)});
  words.push_back("--file-prefix=warpcached" + std::to_string(getpid()));
  if (huge_pages) {
    words.insert(words.end(), {"--in-memory", "--single-file-segments"});
  } else {
    words.insert(words.end(), {"--no-huge", "--no-shconf"});
  }
  std::vector<char*> arguments;
  arguments.reserve(words.size());
  for (std::string& word : words) arguments.push_back(word.data());
  LogCapture log;
  const int result = rte_eal_init(static_cast<int>(arguments.size()), arguments.data());
  // It has bound this thread, whose children would inherit that.
  (void)sched_setaffinity(0, sizeof cpus, &cpus);
  if (result < 0) return error_text("starting DPDK", log);
  // Other processes do not attach to this one. Its folder would stay behind when it is killed.
  std::error_code error;
  const std::filesystem::path folder = rte_eal_get_runtime_dir();
  (void)std::filesystem::remove_all(folder, error);
  (void)std::filesystem::remove(folder.parent_path(), error);  // if it is empty
  // Attempts to connect, and messages to other processes that there are not, are not worth a line.
  (void)rte_log_set_level_pattern("pmd.net.memif", RTE_LOG_CRIT);
  (void)rte_log_set_level_pattern("pmd.net.tap", RTE_LOG_CRIT);
  started = true;
  return "";
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
