// SPDX-License-Identifier: Apache-2.0
#include "options/plan.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace warpcache {
namespace {

constexpr const char* kSimulator = "hash-sim";
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kSizeMin = 2 * kMiB;  // the store's least is below it
constexpr uint64_t kSmallestShare = 4;   // of -m
constexpr uint32_t kSizesMax = 6;
constexpr int kUsageStatus = 2;  // of hash-sim: it has said what is wrong with the trace

bool is_program(const std::string& path) {
  struct stat state {};
  return stat(path.c_str(), &state) == 0 && S_ISREG(state.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// The number of a field of a JSON object that has no nested ones.
std::optional<double> number_of(const std::string& line, std::string_view field) {
  const std::string name = fmt::format("\"{}\":", field);
  const size_t at = line.find(name);
  if (at == std::string::npos) return std::nullopt;
  const char* const begin = line.c_str() + at + name.size();
  char* end = nullptr;
  const double number = std::strtod(begin, &end);
  if (end == begin || number < 0) return std::nullopt;
  return number;
}

std::optional<uint64_t> count_of(const std::string& line, std::string_view field) {
  const auto number = number_of(line, field);
  return number ? std::optional(static_cast<uint64_t>(*number)) : std::nullopt;
}

// A program whose standard output is read.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { (void)end(); }

  // False: it cannot be started.
  bool start(const std::vector<std::string>& words) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const bool started =
        posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    if (!started) pid_ = -1;
    out_ = started ? fdopen(ends[0], "r") : nullptr;
    if (out_ == nullptr) (void)close(ends[0]);
    return out_ != nullptr;
  }
  // JSON has no control characters within a line.
  bool read_line(std::string* line) {
    line->clear();
    for (int c = std::fgetc(out_); c != EOF; c = std::fgetc(out_)) {
      if (c < ' ') return true;
      line->push_back(static_cast<char>(c));
    }
    return !line->empty();
  }
  void stop() {
    if (pid_ > 0) (void)kill(pid_, SIGTERM);
  }
  // Waits for its end. Returns its exit status; -1: a signal ended it.
  int end() {
    if (out_ != nullptr) (void)std::fclose(out_);
    out_ = nullptr;
    if (pid_ <= 0) return status_;
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return status_;
  }

 private:
  pid_t pid_ = -1;
  std::FILE* out_ = nullptr;
  int status_ = -1;
};

std::string why_unreadable(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::strerror(errno);
  struct stat state {};
  const bool folder = fstat(fd, &state) == 0 && S_ISDIR(state.st_mode);
  (void)close(fd);
  return folder ? std::strerror(EISDIR) : "";
}

uint64_t machine_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return UINT64_MAX;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
}

// 1234567 as 1,234,567.
std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string megabytes(uint64_t bytes) {
  return fmt::format("{:.{}f}", static_cast<double>(bytes) / static_cast<double>(kMiB),
                     bytes < 100 * kMiB && bytes % kMiB != 0 ? 1 : 0);
}

}  // namespace

std::vector<uint64_t> plan_sizes(uint64_t memory_bytes, uint64_t machine_bytes) {
  std::vector<uint64_t> sizes;
  uint64_t size = std::max(memory_bytes / kSmallestShare, kSizeMin);
  for (uint32_t i = 0; i < kSizesMax && size <= machine_bytes; ++i, size *= 2) {
    sizes.push_back(size);
  }
  return sizes;
}

std::string find_simulator() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string beside = error ? "" : (self.parent_path() / kSimulator).string();
  if (!beside.empty() && is_program(beside)) return beside;
  const char* const path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const size_t end = std::min(folders.find(':'), folders.size());
    const std::string folder(folders.substr(0, end));
    folders.remove_prefix(std::min(end + 1, folders.size()));
    if (!folder.empty() && is_program(folder + "/" + kSimulator)) return folder + "/" + kSimulator;
  }
  return "";
}

bool read_plan_line(const std::string& line, Plan* plan) {
  const auto memory = count_of(line, "memory");
  const auto used = count_of(line, "used");
  const auto items = count_of(line, "items");
  const auto item_bytes = count_of(line, "item_bytes");
  const auto evictions = count_of(line, "evictions");
  const auto misses = number_of(line, "miss_ratio");
  const auto byte_misses = number_of(line, "byte_miss_ratio");
  const auto requests = count_of(line, "requests");
  const auto gets = count_of(line, "gets");
  const auto keys = count_of(line, "trace_keys");
  const auto key_bytes = count_of(line, "footprint");
  if (!memory || !used || !items || !item_bytes || !evictions || !misses || !byte_misses ||
      !requests || !gets || !keys || !key_bytes) {
    return false;
  }
  plan->requests = *requests;
  plan->gets = *gets;
  plan->keys = *keys;
  plan->key_bytes = *key_bytes;
  plan->rows.push_back(
      {*memory, *used, *items, *item_bytes, *evictions, 1 - *misses, 1 - *byte_misses});
  return true;
}

std::string make_plan(const Options& options, const std::string& simulator, Plan* plan) {
  const std::string& trace = options.process.plan;
  if (const std::string why = why_unreadable(trace); !why.empty()) {
    return "--plan: the trace " + trace + " cannot be read: " + why + ".";
  }
  if (simulator.empty()) {
    return "--plan: the simulator hash-sim is neither beside this program nor in PATH. The package "
           "warpcache-tools has it; it is built by \"cmake --build --preset release --target "
           "hash-sim\", with CLI11 and nlohmann-json.";
  }
  const std::vector<uint64_t> sizes = plan_sizes(options.store.memory_bytes, machine_bytes());
  if (sizes.empty()) return "--plan: this machine has less memory than a quarter of -m.";
  std::vector<std::string> words = {simulator, "--trace", trace, "--cache",
                                    "store",   "--json",  "-",   "--memory"};
  for (const uint64_t size : sizes) words.push_back(std::to_string(size));
  if (isatty(STDERR_FILENO) == 0) words.emplace_back("--quiet");
  Child child;
  if (!child.start(words)) {
    return "--plan: " + simulator + " cannot be started: " + std::strerror(errno) + ".";
  }
  std::string line;
  while (!plan->fits && child.read_line(&line)) {
    if (!read_plan_line(line, plan)) {
      child.stop();
      return "--plan: " + simulator + " is of another version: it does not say what is asked for.";
    }
    plan->fits = plan->rows.back().evictions == 0;
  }
  if (plan->fits) {
    child.stop();
    return "";
  }
  const int status = child.end();
  if (status == kUsageStatus) return "--plan: the trace " + trace + " cannot be replayed.";
  if (status != 0 || plan->rows.empty()) return "--plan: " + simulator + " has failed.";
  return "";
}

std::string plan_text(const Plan& plan, const std::string& trace) {
  std::string text = fmt::format(
      "{}: {} requests, {} of them gets; {} keys; {} MB of keys and values\n\n", trace,
      grouped(plan.requests), grouped(plan.gets), grouped(plan.keys), megabytes(plan.key_bytes));
  text += fmt::format("{:>8} {:>14} {:>9} {:>13} {:>10} {:>12}\n", "-m", "items", "used MB",
                      "bytes an item", "gets hit", "bytes hit");
  for (const PlanRow& row : plan.rows) {
    const double items = static_cast<double>(std::max<uint64_t>(row.items, 1));
    const double whole = static_cast<double>(row.used_bytes) / items;
    const double own = static_cast<double>(row.item_bytes) / items;
    text +=
        fmt::format("{:>8} {:>14} {:>9} {:>6.0f} + {:<4.0f} {:>9.2f}% {:>11.2f}%\n",
                    megabytes(row.memory_bytes), grouped(row.items), megabytes(row.used_bytes), own,
                    std::max(whole - own, 0.0), 100 * row.hit_ratio, 100 * row.byte_hit_ratio);
  }
  text +=
      "\nBytes an item: key and value, and what the server uses beside them. The first request of\n"
      "a key counts as a miss: the server is empty in the beginning.\n";
  text += plan.fits ? "With the last size nothing is evicted: more memory brings no more hits.\n"
                    : "The last size still evicts: give a larger -m to see more.\n";
  return text;
}

}  // namespace warpcache
