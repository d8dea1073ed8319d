// SPDX-License-Identifier: Apache-2.0
//
// Cycles of the NIC cache: what it adds to a frame that goes on to the host, and what a hit takes.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "nic_host.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kKeys = 1000;
constexpr double kHz = 156.25e6;

std::string get_of(uint32_t number) {
  return request_frame("get " + std::to_string(100'000 + number) + "\r\n",
                       static_cast<uint16_t>(number));
}

// Bytes of a frame on the wire: preamble, check sequence and the least gap are 24 more.
double wire_cycles(const std::string& frame) {
  return static_cast<double>(std::max<size_t>(frame.size(), 60) + 24) / 8;
}

struct Latency {
  uint64_t least = ~uint64_t{0};
  uint64_t most = 0;
  uint64_t sum = 0;
  uint32_t count = 0;
  void add(uint64_t cycles) {
    least = std::min(least, cycles);
    most = std::max(most, cycles);
    sum += cycles;
    ++count;
  }
  void print(const char* what) const {
    std::printf(
        "{\"what\": \"%s\", \"cycles_mean\": %.1f, \"cycles_min\": %llu, \"cycles_max\": %llu, "
        "\"frames\": %u}\n",
        what, static_cast<double>(sum) / count, static_cast<unsigned long long>(least),
        static_cast<unsigned long long>(most), count);
  }
};

// Each alone: from a frame's first beat to the first beat of what comes of it.
bool one(NicSim& sim, const std::string& frame, bool forwarded, Latency& latency) {
  sim.wire().send(frame, false);
  if (!sim.run_until_idle()) return false;
  if (sim.host().take().size() != (forwarded ? 1 : 0)) return false;
  if (sim.wire().take().size() != (forwarded ? 0 : 1)) return false;
  latency.add((forwarded ? sim.host().out_began() : sim.wire().out_began()) -
              sim.wire().in_began());
  return true;
}

}  // namespace

int measure_cycles(const NicOptions& options) {
  constexpr uint32_t kRuns = 300;
  SimConfig config;
  config.seed = options.seed;
  NicSim sim(config, 0);
  NicHost host(options.seed, 100);
  Random random(options.seed);
  for (uint32_t i = 0; i < kKeys; ++i)
    sim.wire().send(request_frame("set " + std::to_string(100'000 + i) + " 0 0 6\r\nvvvvvv\r\n"),
                    false);
  if (!settle(sim, host)) return 1;
  for (uint32_t i = 0; i < kKeys; ++i) {
    sim.wire().send(get_of(i), false);
    if (i % 16 == 0 && !settle(sim, host)) return 1;
  }
  if (!settle(sim, host)) return 1;
  // What was not copied for want of a slot.
  for (uint32_t i = 0; i < kKeys; ++i) {
    sim.wire().send(get_of(i), false);
    if (!settle(sim, host)) return 1;
  }
  (void)sim.wire().take();

  Latency hit, miss, set, segment, large, back;
  std::string tcp = tcp_frame("");
  const std::string full =
      request_frame("get " + std::string(240, 'x') + std::string(1200, ' ') + "\r\n");
  for (uint32_t i = 0; i < kRuns; ++i) {
    const std::string key = std::to_string(500'000 + i);
    if (!one(sim, get_of(random.below(kKeys)), false, hit)) return 1;
    if (!one(sim, request_frame("get " + key + "\r\n"), true, miss)) return 1;
    if (!one(sim, request_frame("set " + key + " 0 0 6\r\nvvvvvv\r\n"), true, set)) return 1;
    if (!one(sim, tcp, true, segment)) return 1;
    if (!one(sim, full, true, large)) return 1;
    sim.host().send(get_of(i), false);
    if (!sim.run_until_idle() || sim.wire().take().size() != 1) return 1;
    back.add(sim.wire().out_began() - sim.host().in_began());
  }
  hit.print("get that hits, to its reply");
  miss.print("get that misses, to the host");
  set.print("set, to the host");
  segment.print("TCP segment without data, to the host");
  large.print("datagram of a full frame, to the host");
  back.print("frame of the host, to the wire");

  // A stream of gets, as fast as they are taken; some of them miss and go to a host that takes all.
  for (const uint32_t misses : {0U, 10U}) {
    const auto before = sim.cycles();
    const uint32_t answered_before = sim.counter(kAnswered);
    const auto count = static_cast<uint32_t>(options.count);
    for (uint32_t i = 0; i < count; ++i) {
      const bool miss_now = random.below(100) < misses;
      sim.wire().send(get_of(miss_now ? kKeys + random.below(kKeys) : random.below(kKeys)), false);
    }
    if (!sim.run_until_idle(uint64_t{100} * count + 10'000)) return 1;
    const double cycles = static_cast<double>(sim.cycles() - before) / count;
    const std::vector<std::string> replies = sim.wire().take();
    const uint32_t answered = sim.counter(kAnswered) - answered_before;
    if (replies.empty() || replies.size() != answered ||
        sim.host().take().size() + answered != count)
      return 1;
    const double wire = std::max(wire_cycles(get_of(0)), wire_cycles(replies[0]));
    std::printf(
        "{\"what\": \"text get, 6 B keys, 6 B values, %u%% miss\", \"requests\": %u, "
        "\"answered\": %u, \"cycles_a_request\": %.3f, \"wire_cycles\": %.3f, "
        "\"rate_156mhz\": %.0f, \"rate_at_10g_156mhz\": %.0f}\n",
        misses, count, answered, cycles, wire, kHz / cycles, kHz / std::max(cycles, wire));
  }
  return 0;
}

}  // namespace warpcache::rtl
