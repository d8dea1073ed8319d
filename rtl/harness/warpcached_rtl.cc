// SPDX-License-Identifier: Apache-2.0
//
// warpcached-rtl INTERFACE ADDRESS [UDP-PORT]: the core in simulation answers the clients of a TAP
// interface, as warpcached's --frames=tap does (docs/frames.md): every address of the interface's
// network except the kernel's own is the core's.
// warpcached-rtl --tcp PORT: TCP clients at 127.0.0.1. TCP ends here, the core gets each request as
// a datagram.
// Both run until SIGINT or SIGTERM.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "io/frames/tap_port.h"
#include "net/packet.h"
#include "sim.h"
#include "tcp_clients.h"

namespace {

volatile std::sig_atomic_t stopped = 0;
void stop(int) { stopped = 1; }

constexpr uint32_t kFramesMax = 256;
constexpr uint32_t kBufferBytes = 4 * 1024 * 1024;

constexpr int kWaitMs = 50;

// The core's clock follows the host's.
class Clock {
 public:
  explicit Clock(warpcache::rtl::Sim& sim) : sim_(sim), second_(now()) {
    constexpr uint32_t kFirstSecond = 2;
    sim.write_register(1, second_ - kFirstSecond);
  }
  void advance() {
    const uint32_t second = now();
    if (second <= second_) return;
    sim_.advance(second - second_);
    second_ = second;
  }

 private:
  static uint32_t now() { return static_cast<uint32_t>(std::time(nullptr)); }
  warpcache::rtl::Sim& sim_;
  uint32_t second_;
};

int hangs() {
  std::fprintf(stderr, "warpcached-rtl: the core hangs\n");
  return 70;
}

void print_counters(warpcache::rtl::Sim& sim) {
  namespace rtl = warpcache::rtl;
  std::printf("%u frames, %u requests, %u hits, %u misses, %u stores\n", sim.counter(rtl::kFrames),
              sim.counter(rtl::kRequests), sim.counter(rtl::kHits), sim.counter(rtl::kMisses),
              sim.counter(rtl::kStores));
}

int serve_tcp(uint16_t port) {
  warpcache::rtl::TcpClients clients;
  const std::string error = clients.listen(port);
  if (!error.empty()) {
    std::fprintf(stderr, "warpcached-rtl: %s\n", error.c_str());
    return 71;
  }
  warpcache::rtl::Sim sim({});
  Clock clock(sim);
  std::printf("ready at port %u\n", unsigned{clients.port()});
  std::fflush(stdout);
  while (stopped == 0) {
    if (!clients.serve(sim, kWaitMs)) return hangs();
    clock.advance();
  }
  print_counters(sim);
  return 0;
}

int serve(const std::string& interface, const std::string& address, uint16_t udp_port) {
  namespace wc = warpcache;
  std::unique_ptr<wc::io::FramePort> port;
  const std::string error = wc::io::TapPort::open(interface, address, &port);
  if (!error.empty()) {
    std::fprintf(stderr, "warpcached-rtl: %s\n", error.c_str());
    return 71;
  }
  wc::rtl::SimConfig config;
  config.udp_port = udp_port;
  wc::rtl::Sim sim(config);
  Clock clock(sim);
  std::vector<uint8_t> memory(kBufferBytes + 16);
  std::vector<wc::net::PacketSlot> slots(kFramesMax);
  std::vector<uint64_t> times(kFramesMax);
  wc::io::FrameBuffer buffer;
  buffer.data = memory.data() + (16 - reinterpret_cast<uintptr_t>(memory.data()) % 16) % 16;
  buffer.size = kBufferBytes;
  buffer.slots = slots.data();
  buffer.times_ns = times.data();
  buffer.frames_max = kFramesMax;
  std::printf("ready\n");
  std::fflush(stdout);
  while (stopped == 0) {
    buffer.count = buffer.used = 0;
    if (!port->receive(buffer, kWaitMs)) break;
    clock.advance();
    if (buffer.count == 0) continue;
    std::vector<wc::MutableBytes> others;
    for (uint32_t i = 0; i < buffer.count; ++i) {
      uint8_t* const frame = buffer.data + slots[i].offset;
      wc::net::Packet packet;
      // What is no request the core drops, and the kernel gets.
      sim.send({reinterpret_cast<const char*>(frame), slots[i].size});
      if (wc::net::parse_packet_without_extensions({frame, slots[i].size}, udp_port, packet) !=
          wc::net::PacketVerdict::kRequest) {
        others.push_back({frame, slots[i].size});
      }
    }
    if (!sim.run_until_idle()) return hangs();
    const std::vector<std::string> replies = sim.take();
    std::vector<wc::io::TxFrame> out;
    for (const std::string& reply : replies) {
      out.push_back({{reinterpret_cast<const uint8_t*>(reply.data()), reply.size()}, 0});
    }
    port->send(0, out.data(), static_cast<uint32_t>(out.size()));
    port->pass_on(others.data(), static_cast<uint32_t>(others.size()));
  }
  print_counters(sim);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: warpcached-rtl INTERFACE ADDRESS/PREFIX [UDP-PORT]\n"
                 "       warpcached-rtl --tcp PORT\n");
    return 64;
  }
  struct sigaction action = {};
  action.sa_handler = stop;  // without SA_RESTART: a wait ends
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  if (std::string(argv[1]) == "--tcp") return serve_tcp(static_cast<uint16_t>(std::atoi(argv[2])));
  return serve(argv[1], argv[2], static_cast<uint16_t>(argc > 3 ? std::atoi(argv[3]) : 11211));
}
