// SPDX-License-Identifier: Apache-2.0
//
// rtl_bench [--requests N] [--seed N]: cycles a request, of long runs. Frames come and go as fast
// as the core takes and gives them, without the gaps of a wire; what a wire of 8 bytes a cycle
// would take for the same frames is beside it. Prints a JSON object a line.
//
// rtl_bench --hazards 1: the same of gets and sets of keys that are more or less popular, and how
// often an operation waits for an earlier one on its row.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "frames.h"
#include "sim.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kKeys = 1000;

std::string key_of(uint32_t number, uint32_t size) {
  std::string key = std::to_string(100'000 + number);
  key.resize(size, 'k');
  return key;
}

std::string put(uint64_t number, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(number >> (8 * i));
  return out;
}

std::string binary(uint8_t opcode, const std::string& extras, const std::string& key,
                   const std::string& value) {
  return std::string("\x80") + static_cast<char>(opcode) + put(key.size(), 2) +
         static_cast<char>(extras.size()) + std::string(3, '\0') +
         put(extras.size() + key.size() + value.size(), 4) + std::string(12, '\0') + extras + key +
         value;
}

// Bytes of a frame on the wire: preamble, check sequence and the least gap are 24 more.
uint64_t wire_bytes(const std::string& frame) { return std::max<uint64_t>(frame.size(), 60) + 24; }

struct Workload {
  const char* name;
  uint32_t key;
  uint32_t value;
  uint32_t batch;  // requests of a datagram
};

std::string payload(const Workload& work, Random& random) {
  std::string out;
  const std::string name = work.name;
  if (name == "text multiget") {
    out = "get";
    for (uint32_t i = 0; i < work.batch; ++i) out += " " + key_of(random.below(kKeys), work.key);
    return out + "\r\n";
  }
  for (uint32_t i = 0; i < work.batch; ++i) {
    const std::string key = key_of(random.below(kKeys), work.key);
    const std::string value(work.value, 'v');
    if (name == "text get") out += "get " + key + "\r\n";
    if (name == "text set")
      out += "set " + key + " 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n";
    if (name == "binary get") out += binary(0x00, "", key, "");
    if (name == "binary quiet get") out += binary(0x09, "", key, "");
    if (name == "binary set") out += binary(0x01, std::string(8, '\0'), key, value);
    if (name == "text get of nothing")
      out += "get " + key_of(kKeys + random.below(kKeys), work.key) + "\r\n";
  }
  return out;
}

void fill(Sim& sim, const Workload& work) {
  for (uint32_t i = 0; i < kKeys; ++i) {
    const std::string value(work.value, 'v');
    sim.send(request_frame("set " + key_of(i, work.key) + " 0 0 " + std::to_string(work.value) +
                           "\r\n" + value + "\r\n"));
  }
  if (!sim.run_until_idle()) std::exit(1);
  sim.take();
}

// From the first beat of a request to the first of its reply, one request at a time.
void measure_latency(Sim& sim, const Workload& work, Random& random, double& mean, uint64_t& least,
                     uint64_t& most) {
  constexpr int kRuns = 300;
  least = ~uint64_t{0};
  most = 0;
  uint64_t sum = 0;
  for (int i = 0; i < kRuns; ++i) {
    sim.send(request_frame(payload(work, random)));
    if (!sim.run_until_idle()) std::exit(1);
    if (sim.take().empty()) std::exit(1);
    const uint64_t cycles = sim.out_began() - sim.in_began();
    sum += cycles;
    least = std::min(least, cycles);
    most = std::max(most, cycles);
  }
  mean = static_cast<double>(sum) / kRuns;
}

// Of a stream of datagrams, without its first tenth: cycles a request.
struct Cycles {
  double core;
  double wire_in;
  double wire_out;
  double stalled;  // by hazards
};

template <class Payload>
Cycles stream(Sim& sim, uint64_t datagrams, uint32_t batch, const Payload& next) {
  uint64_t in_bytes = 0;
  uint64_t out_bytes = 0;
  uint64_t answered = 0;
  uint64_t sent = 0;
  const uint64_t warm = datagrams / 10;
  uint64_t from = 0;
  uint32_t stalled = 0;
  while (answered < datagrams) {
    while (sent < datagrams && sim.frames_queued() < 4) {
      const std::string frame = request_frame(next());
      in_bytes += wire_bytes(frame);
      ++sent;
      sim.send(frame);
    }
    sim.step();
    for (const std::string& frame : sim.take()) {
      out_bytes += wire_bytes(frame);
      // A reply of several datagrams counts once, by its last one.
      if (frame[45] + 1 == frame[47]) ++answered;
    }
    if (answered >= warm && from == 0) {
      from = sim.cycles();
      stalled = sim.counter(kHazardCycles);
    }
  }
  const auto requests = static_cast<double>(datagrams * batch);
  const auto measured = static_cast<double>((datagrams - warm) * batch);
  return {static_cast<double>(sim.cycles() - from) / measured,
          static_cast<double>(in_bytes) / 8 / requests,
          static_cast<double>(out_bytes) / 8 / requests,
          static_cast<double>(sim.counter(kHazardCycles) - stalled) / measured};
}

void measure(const Workload& work, uint64_t requests, uint32_t seed) {
  constexpr double kHz = 156.25e6;
  SimConfig config;
  config.seed = seed;
  Sim sim(config);
  Random random(seed);
  fill(sim, work);
  double latency = 0;
  uint64_t latency_least = 0;
  uint64_t latency_most = 0;
  measure_latency(sim, work, random, latency, latency_least, latency_most);
  const uint64_t datagrams = requests / work.batch;
  const auto [cycles, wire_in, wire_out, stalled] =
      stream(sim, datagrams, work.batch, [&] { return payload(work, random); });
  const double limit = std::max({cycles, wire_in, wire_out});
  std::printf(
      "{\"workload\": \"%s\", \"key_bytes\": %u, \"value_bytes\": %u, \"requests_a_datagram\": %u, "
      "\"requests\": %llu, "
      "\"cycles_a_request\": %.3f, \"wire_cycles_in\": %.3f, \"wire_cycles_out\": %.3f, "
      "\"rate_core_156mhz\": %.0f, "
      "\"rate_at_10g_156mhz\": %.0f, \"latency_cycles_mean\": %.1f, \"latency_cycles_min\": %llu, "
      "\"latency_cycles_max\": %llu}\n",
      work.name, work.key, work.value, work.batch,
      static_cast<unsigned long long>(datagrams * work.batch), cycles, wire_in, wire_out,
      kHz / cycles, kHz / limit, latency, static_cast<unsigned long long>(latency_least),
      static_cast<unsigned long long>(latency_most));
  std::fflush(stdout);
}

// Gets and sets of keys that are more or less popular.
struct Mix {
  uint32_t set_percent;
  double skew;  // Zipf's exponent; 0: all keys alike
  uint32_t value;
  uint32_t batch;
};

void measure_hazards(const Mix& mix, uint64_t requests, uint32_t seed) {
  constexpr uint32_t kMixKeys = 10'000;
  constexpr uint32_t kKeyBytes = 6;
  std::vector<double> below(kMixKeys);  // the part of all requests that keys up to this one get
  double sum = 0;
  for (uint32_t i = 0; i < kMixKeys; ++i) below[i] = sum += std::pow(i + 1, -mix.skew);
  SimConfig config;
  config.seed = seed;
  Sim sim(config);
  Random random(seed);
  const auto set = [&](uint32_t key) {
    return "set " + key_of(key, kKeyBytes) + " 0 0 " + std::to_string(mix.value) + "\r\n" +
           std::string(mix.value, 'v') + "\r\n";
  };
  for (uint32_t i = 0; i < kMixKeys; ++i) sim.send(request_frame(set(i)));
  if (!sim.run_until_idle()) std::exit(1);
  sim.take();
  const uint64_t datagrams = requests / mix.batch;
  const auto [cycles, wire_in, wire_out, stalled] = stream(sim, datagrams, mix.batch, [&] {
    std::string out;
    for (uint32_t i = 0; i < mix.batch; ++i) {
      const double at = sum * random.below(1U << 31) / (1U << 31);
      const auto key = static_cast<uint32_t>(std::upper_bound(below.begin(), below.end() - 1, at) -
                                             below.begin());
      out +=
          random.below(100) < mix.set_percent ? set(key) : "get " + key_of(key, kKeyBytes) + "\r\n";
    }
    return out;
  });
  std::printf(
      "{\"workload\": \"text get and set\", \"set_percent\": %u, \"keys\": %u, \"zipf\": %.2f, "
      "\"key_bytes\": %u, \"value_bytes\": %u, \"requests_a_datagram\": %u, \"requests\": %llu, "
      "\"cycles_a_request\": %.3f, \"wire_cycles_in\": %.3f, \"wire_cycles_out\": %.3f, "
      "\"stalled_cycles_a_request\": %.3f, \"stalled\": %.4f}\n",
      mix.set_percent, kMixKeys, mix.skew, kKeyBytes, mix.value, mix.batch,
      static_cast<unsigned long long>(datagrams * mix.batch), cycles, wire_in, wire_out, stalled,
      stalled / cycles);
  std::fflush(stdout);
}

}  // namespace
}  // namespace warpcache::rtl

int main(int argc, char** argv) {
  uint64_t requests = 100'000;
  uint32_t seed = 1;
  bool hazards = false;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) == "--requests")
      requests = static_cast<uint64_t>(std::atoll(argv[i + 1]));
    if (std::string(argv[i]) == "--seed") seed = static_cast<uint32_t>(std::atoi(argv[i + 1]));
    if (std::string(argv[i]) == "--hazards") hazards = std::atoi(argv[i + 1]) != 0;
  }
  if (hazards) {
    for (const uint32_t batch : {1U, 10U}) {
      for (const double skew : {0.0, 0.99}) {
        for (const uint32_t set_percent : {5U, 50U}) {
          for (const uint32_t value : {6U, 32U})
            warpcache::rtl::measure_hazards({set_percent, skew, value, batch}, requests, seed);
        }
      }
    }
    return 0;
  }
  static const warpcache::rtl::Workload kWorkloads[] = {
      {"text get", 6, 6, 1},       {"binary get", 6, 6, 1},          {"text set", 6, 6, 1},
      {"binary set", 6, 6, 1},     {"text get of nothing", 6, 6, 1}, {"binary quiet get", 6, 6, 36},
      {"text multiget", 6, 6, 50}, {"binary get", 16, 16, 1},        {"binary get", 32, 32, 1},
      {"binary get", 64, 64, 1},   {"binary get", 128, 128, 1},      {"binary get", 168, 168, 1},
      {"binary get", 32, 512, 1},  {"binary get", 32, 1024, 1},      {"binary set", 32, 1024, 1}};
  for (const auto& work : kWorkloads) warpcache::rtl::measure(work, requests, seed);
  return 0;
}
