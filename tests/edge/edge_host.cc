// SPDX-License-Identifier: Apache-2.0
//
// A process that owns the GPU's side of queues in a file, for submitters in other processes. It
// registers the tests' event kernels, prints what they need, and serves until its input ends.
//
// Usage: edge_host QUEUES COUNTERS [--keep-going] [--in-order]
//   QUEUES      the file of the queues
//   COUNTERS    a file of words of four bytes that the events of kCount add to
//   --keep-going  the GPU is used by a child; if that ends by a fault, another one continues with
//   the
//                 queues. Events that were in flight then get EDGE_CODE_FAULT
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "edge/test_events.h"
#include "gpu/device.h"

namespace warpcache::edge {
namespace {

constexpr uint32_t kCounters = 1 << 20;
constexpr uint32_t kDepth = 64;

struct Options {
  const char* queues = nullptr;
  const char* counters_file = nullptr;
  void* counters = nullptr;  // mapped before the first child: all children have one address
  bool keep_going = false;
  uint32_t flags = 0;
};

void* map_counters(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, kCounters * 4) != 0) return nullptr;
  void* const data = mmap(nullptr, kCounters * 4, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return data == MAP_FAILED ? nullptr : data;
}

// The events that are not registered yet: after a fault they are.
bool add_events(edge_runtime* runtime, uint32_t flags) {
  constexpr struct {
    TestFunction function;
    uint32_t bytes;
  } kEvents[] = {{kCount, sizeof(CountParameters)},
                 {kAdd, sizeof(AddParameters)},
                 {kFail, sizeof(FailParameters)},
                 {kSpin, sizeof(SpinParameters)},
                 {kTrap, sizeof(FailParameters)}};
  for (const auto& each : kEvents) {
    edge_event event = {};
    event.function = each.function;
    event.blocks = 1;
    event.parameter_bytes = each.bytes;
    event.depth = kDepth;
    event.flags = flags | EDGE_MODIFIABLE;
    uint32_t id = 0;
    if (edge_register_event(runtime, &event, &id) != EDGE_OK) return false;
  }
  return true;
}

bool input_has_ended() {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  char byte;
  return poll(&input, 1, 20) > 0 && read(STDIN_FILENO, &byte, 1) == 0;
}

int serve(const Options& options, bool first) {
  edge_config config = {};
  config.program = program_of_tests();
  config.path = options.queues;
  config.workers = 3;
  config.threads = 64;
  config.depth_max = kDepth;
  config.wait_ms_max = 30000;
  // Taking memory may wait for kernels: it comes before the scheduler.
  gpu::DeviceFacts facts;
  const std::string refusal = gpu::open_device(0, &facts);
  if (!refusal.empty()) {
    (void)std::printf("no GPU: %s\n", refusal.c_str());
    return 77;
  }
  gpu::PinnedMemory pinned;
  if (!pinned.pin({static_cast<uint8_t*>(options.counters), kCounters * 4})) return 1;
  edge_runtime* runtime = nullptr;
  const edge_status opened = edge_open(&config, &runtime);
  if (opened != EDGE_OK) {
    (void)std::printf("%s: %s\n", edge_status_text(opened), edge_why(runtime));
    return 1;
  }
  if (first && !add_events(runtime, options.flags)) return 1;
  (void)std::printf("ready counters %" PRIu64 " pid %d\n",
                    reinterpret_cast<uint64_t>(options.counters), static_cast<int>(getpid()));
  (void)std::fflush(stdout);
  while (!input_has_ended()) {
    if (edge_check(runtime) == EDGE_OK) continue;
    (void)std::printf("fault: %s\n", edge_why(runtime));
    (void)std::fflush(stdout);
    _exit(3);  // nothing of this process's GPU can be given back
  }
  return edge_close(runtime) == EDGE_OK ? 0 : 1;
}

// The child may be ended by the simulated GPU, too.
int supervise(const Options& options) {
  for (bool first = true;; first = false) {
    const pid_t child = fork();
    if (child == 0) _exit(serve(options, first));
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
    if (code != 3) return code;
    (void)std::printf("again\n");
    (void)std::fflush(stdout);
  }
}

int run(const std::vector<std::string>& words) {
  Options options;
  for (const std::string& word : words) {
    if (word == "--keep-going") {
      options.keep_going = true;
    } else if (word == "--in-order") {
      options.flags |= EDGE_IN_ORDER;
    } else if (options.queues == nullptr) {
      options.queues = word.c_str();
    } else {
      options.counters_file = word.c_str();
    }
  }
  if (options.counters_file == nullptr) return 2;
  options.counters = map_counters(options.counters_file);
  if (options.counters == nullptr) return 1;
  return options.keep_going ? supervise(options) : serve(options, true);
}

}  // namespace
}  // namespace warpcache::edge

int main(int count, char** words) {
  return warpcache::edge::run(std::vector<std::string>(words + 1, words + count));
}
