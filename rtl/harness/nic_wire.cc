// SPDX-License-Identifier: Apache-2.0
//
// nic-cache-rtl WIRE HOST [--port PORT] [--fill-seconds SECONDS]: the NIC cache (nic_cache.sv) in
// simulation, between two TAP interfaces. What the kernel sends to WIRE comes from clients, what it
// sends to HOST comes from the server; so at least one of them belongs into another network
// namespace (docs/rtl.md). The interfaces are made if there are none; whoever moves them gives them
// their addresses and sets them up. Runs until SIGINT or SIGTERM.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "io/frames/tap_interface.h"
#include "nic_sim.h"

namespace warpcache::rtl {
namespace {

volatile std::sig_atomic_t stopped = 0;
void stop(int) { stopped = 1; }

constexpr int kStepsAtOnce = 32;   // cycles between two looks for frames
constexpr int kQuietCycles = 400;  // longer than a frame in the first blocks, or the slowest memory
constexpr uint64_t kQueuedMax = 64;  // frames; more stay in the interface's queue
constexpr int kWaitMs = 50;
constexpr uint32_t kFrameBytesMax = 16 * 1024;  // what miss_port can hold
constexpr uint32_t kFrameBytesMin = 14;

struct Options {
  std::string wire;
  std::string host;
  uint16_t port = 11211;
  uint8_t fill_seconds = 1;
};

// One interface and the simulation's port behind it.
class Side {
 public:
  Side(FramePorts& ports, const io::TapInterface& interface)
      : ports_(ports), interface_(interface), buffer_(kFrameBytesMax + 1) {}

  // False: the interface has ended.
  bool receive() {
    while (ports_.queued() < kQueuedMax) {
      const ssize_t size = interface_.read(buffer_.data(), static_cast<uint32_t>(buffer_.size()));
      if (size < 0) {
        std::fprintf(stderr, "nic-cache-rtl: %s: %s\n", interface_.name().c_str(),
                     std::strerror(errno));
        return false;
      }
      if (size == 0) return true;
      if (size < ssize_t{kFrameBytesMin} || size > ssize_t{kFrameBytesMax}) {
        ++dropped_;
        continue;
      }
      ports_.send({reinterpret_cast<const char*>(buffer_.data()), static_cast<size_t>(size)},
                  false);
    }
    return true;
  }
  void send() {
    for (const std::string& frame : ports_.take()) {
      const Bytes bytes = {reinterpret_cast<const uint8_t*>(frame.data()), frame.size()};
      if (!interface_.write(bytes)) ++dropped_;
    }
  }
  pollfd waits() const { return {interface_.fd(), POLLIN, 0}; }
  uint64_t dropped() const { return dropped_; }

 private:
  FramePorts& ports_;
  const io::TapInterface& interface_;
  std::vector<uint8_t> buffer_;
  uint64_t dropped_ = 0;  // too short, too long, or not taken by the kernel
};

// Seconds of a clock that nobody sets back.
int64_t now() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

int serve(const Options& options) {
  io::TapInterface interfaces[2];
  const std::string names[] = {options.wire, options.host};
  for (int i = 0; i < 2; ++i) {
    const std::string error = interfaces[i].open(names[i]);
    if (error.empty()) continue;
    std::fprintf(stderr, "nic-cache-rtl: %s\n", error.c_str());
    return 71;
  }
  SimConfig config;
  config.udp_port = options.port;
  NicSim sim(config, options.fill_seconds);
  Side wire(sim.wire(), interfaces[0]);
  Side host(sim.host(), interfaces[1]);
  std::printf("ready\n");
  std::fflush(stdout);
  int64_t second = now();
  int quiet = 0;
  while (stopped == 0) {
    if (!wire.receive() || !host.receive()) return 71;
    for (; second < now(); ++second) sim.tick();
    for (int i = 0; i < kStepsAtOnce; ++i) {
      sim.step();
      quiet = sim.idle() ? quiet + 1 : 0;
    }
    wire.send();
    host.send();
    if (quiet < kQuietCycles) continue;
    pollfd waits[] = {wire.waits(), host.waits()};
    (void)poll(waits, 2, kWaitMs);
  }
  std::printf(
      "%u answered, %u forwarded, %u filled, %u fills dead, %u flushes; %llu frames dropped at "
      "the interfaces; %llu cycles\n",
      sim.counter(kAnswered), sim.counter(kForwarded), sim.counter(kFilled), sim.counter(kFillDead),
      sim.counter(kFlushed), static_cast<unsigned long long>(wire.dropped() + host.dropped()),
      static_cast<unsigned long long>(sim.cycles()));
  return 0;
}

bool read_number(const char* text, uint32_t least, uint32_t most, uint32_t* number) {
  const char* const end = text + std::strlen(text);
  const auto [read_end, error] = std::from_chars(text, end, *number);
  return error == std::errc{} && read_end == end && *number >= least && *number <= most;
}

bool read_options(int argc, char** argv, Options* options) {
  if (argc < 3 || argc % 2 == 0) return false;
  options->wire = argv[1];
  options->host = argv[2];
  for (int i = 3; i < argc; i += 2) {
    uint32_t number = 0;
    const std::string word = argv[i];
    if (word == "--port" && read_number(argv[i + 1], 1, UINT16_MAX, &number)) {
      options->port = static_cast<uint16_t>(number);
    } else if (word == "--fill-seconds" && read_number(argv[i + 1], 0, UINT8_MAX, &number)) {
      options->fill_seconds = static_cast<uint8_t>(number);
    } else {
      return false;
    }
  }
  return options->wire != options->host;
}

}  // namespace
}  // namespace warpcache::rtl

int main(int argc, char** argv) {
  warpcache::rtl::Options options;
  if (!warpcache::rtl::read_options(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: nic-cache-rtl WIRE HOST [--port PORT] [--fill-seconds 0..255]\n"
                 "WIRE and HOST are two TAP interfaces.\n");
    return 64;
  }
  struct sigaction action = {};
  action.sa_handler = warpcache::rtl::stop;  // without SA_RESTART: a wait ends
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return warpcache::rtl::serve(options);
}
