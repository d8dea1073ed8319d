// SPDX-License-Identifier: Apache-2.0
//
// rtl_lanes [--operations N] [--seed N] [--hold PERCENT]: random datagrams to eight lanes and to
// the CPU engine, and the replies compared byte by byte. Alternately one lane gets all datagrams,
// whose order is then known, and all lanes get some at the same time, each with keys of its own and
// without flush_all.
// rtl_lanes --measure DATAGRAMS: cycles a key of multigets that all lanes get at the same time.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "datagrams.h"
#include "frames.h"
#include "lanes_sim.h"
#include "reference.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kLanes = LanesSim::kLanes;

struct Options {
  uint64_t operations = 10'000;
  uint32_t seed = 1;
  uint32_t hold = 0;
  uint64_t measure = 0;  // datagrams of a lane
};

// What is sent to one lane, and to the reference.
struct Burst {
  std::vector<Datagram> datagrams;
  std::vector<std::string> frames;
};

Burst send(LanesSim& sim, uint32_t lane, Generator& generator, uint32_t count) {
  Burst burst;
  for (uint32_t i = 0; i < count; ++i) {
    burst.datagrams.push_back(generator.next());
    const auto id = static_cast<uint16_t>(i);
    sim.send(lane, request_frame(burst.datagrams.back().core, id));
    burst.frames.push_back(request_frame(burst.datagrams.back().reference, id));
  }
  return burst;
}

uint64_t operations_of(const Burst& burst) {
  uint64_t sum = 0;
  for (const Datagram& datagram : burst.datagrams) sum += datagram.operations;
  return sum;
}

int differ(uint64_t done, uint32_t seed, const char* how) {
  std::printf("%s after %llu operations, seed %u\n", how, static_cast<unsigned long long>(done),
              seed);
  return 1;
}

int run(const Options& options) {
  constexpr uint32_t kDatagramsMax = 40;  // of a burst
  constexpr uint32_t kGenerationRegister = 2;
  Reference reference;
  SimConfig config;
  config.hold_percent = options.hold;
  config.seed = options.seed;
  LanesSim sim(config);
  sim.write_register(0, reference.now());
  sim.write_register(1, reference.unix_start());
  const uint32_t generation = sim.read_register(0, kGenerationRegister);
  std::map<std::string, CasPair> cas;
  Generator any(options.seed, cas);
  std::vector<Generator> own;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    own.emplace_back(options.seed * kLanes + lane, cas, static_cast<char>('a' + lane), false);
  Random random(options.seed + 1);
  uint64_t done = 0;
  uint64_t together = 0;
  while (done < options.operations) {
    const uint32_t count = 1 + random.below(kDatagramsMax);
    std::vector<Burst> bursts(kLanes);
    const bool one = random.below(2) == 0;
    const uint32_t only = random.below(kLanes);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if (one && lane != only) continue;
      bursts[lane] = send(sim, lane, one ? any : own[lane], one ? count : 1 + count / 4);
      done += operations_of(bursts[lane]);
      if (!one) together += operations_of(bursts[lane]);
    }
    if (!sim.run_until_idle()) return differ(done, options.seed, "the lanes hang");
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if (!compare(bursts[lane].datagrams, reference.run(bursts[lane].frames), sim.take(lane), cas))
        return differ(done, options.seed, "different replies");
    }
    if (random.below(10) == 0) {
      const uint32_t seconds = 1 + random.below(6);
      reference.advance(seconds);
      sim.advance(seconds);
    }
  }
  const uint32_t flushes = sim.read_register(0, kGenerationRegister) - generation;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (sim.read_register(lane, kGenerationRegister) != generation + flushes)
      return differ(done, options.seed, "a store has missed a flush_all");
  }
  std::printf("%llu operations agree, %llu of them of all lanes at the same time; %u flushes\n",
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(together),
              flushes);
  return 0;
}

int measure(const Options& options) {
  constexpr uint32_t kKeys = 1000;
  constexpr uint32_t kBatch = 50;
  const auto key = [](uint32_t number) { return std::to_string(100'000 + number); };
  SimConfig config;
  config.seed = options.seed;
  LanesSim sim(config);
  Random random(options.seed);
  for (uint32_t i = 0; i < kKeys; ++i)
    sim.send(i % kLanes, request_frame("set " + key(i) + " 0 0 6\r\nvvvvvv\r\n"));
  if (!sim.run_until_idle()) return differ(0, options.seed, "the lanes hang");
  for (uint32_t lane = 0; lane < kLanes; ++lane) sim.take(lane);
  std::vector<uint64_t> sent(kLanes);
  const uint64_t warm = options.measure / 10 * kLanes;
  uint64_t from = 0;
  uint64_t sum = 0;
  while (sum < options.measure * kLanes) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      while (sent[lane] < options.measure && sim.frames_queued(lane) < 4) {
        std::string request = "get";
        for (uint32_t i = 0; i < kBatch; ++i) request += " " + key(random.below(kKeys));
        sim.send(lane, request_frame(request + "\r\n"));
        ++sent[lane];
      }
    }
    sim.step();
    for (uint32_t lane = 0; lane < kLanes; ++lane) sum += sim.take(lane).size();
    if (sum >= warm && from == 0) from = sim.cycles();
  }
  const double cycles =
      static_cast<double>(sim.cycles() - from) / static_cast<double>((sum - warm) * kBatch);
  constexpr double kHz = 156.25e6;
  std::printf(
      "{\"workload\": \"text multiget\", \"lanes\": %u, \"key_bytes\": 6, \"value_bytes\": 6, "
      "\"requests_a_datagram\": %u, \"requests\": %llu, \"cycles_a_request\": %.4f, "
      "\"rate_core_156mhz\": %.0f}\n",
      kLanes, kBatch, static_cast<unsigned long long>(sum * kBatch), cycles, kHz / cycles);
  return 0;
}

}  // namespace
}  // namespace warpcache::rtl

int main(int argc, char** argv) {
  warpcache::rtl::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    const auto number = static_cast<uint64_t>(std::atoll(argv[i + 1]));
    if (word == "--operations") options.operations = number;
    if (word == "--seed") options.seed = static_cast<uint32_t>(number);
    if (word == "--hold") options.hold = static_cast<uint32_t>(number);
    if (word == "--measure") options.measure = number;
  }
  return options.measure != 0 ? warpcache::rtl::measure(options) : warpcache::rtl::run(options);
}
