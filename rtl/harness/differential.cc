// SPDX-License-Identifier: Apache-2.0
//
// rtl_differential [--operations N] [--seed N] [--hold PERCENT] [--latency MIN MAX]: random
// datagrams, the same to the core and to the CPU engine (src/engine), and the replies compared byte
// by byte.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "datagrams.h"
#include "frames.h"
#include "reference.h"
#include "sim.h"

namespace warpcache::rtl {
namespace {

struct Options {
  uint64_t operations = 100'000;
  uint32_t seed = 1;
  uint32_t hold = 0;
  uint32_t latency_min = 30;
  uint32_t latency_max = 100;
};

int run(const Options& options) {
  constexpr uint32_t kDatagramsMax = 60;  // of a burst
  Reference reference;
  SimConfig config;
  config.hold_percent = options.hold;
  config.seed = options.seed;
  config.latency_min = options.latency_min;
  config.latency_max = options.latency_max;
  Sim sim(config);
  sim.write_register(0, reference.now());
  sim.write_register(1, reference.unix_start());
  std::map<std::string, CasPair> cas;
  Generator generator(options.seed, cas);
  Random random(options.seed + 1);
  uint64_t done = 0;
  uint64_t cycles = 0;
  while (done < options.operations) {
    std::vector<Datagram> datagrams;
    std::vector<std::string> reference_frames;
    const uint32_t count = 1 + random.below(kDatagramsMax);
    for (uint32_t i = 0; i < count; ++i) {
      datagrams.push_back(generator.next());
      const auto id = static_cast<uint16_t>(i);
      std::string frame = request_frame(datagrams.back().reference, id);
      if (datagrams.back().reference != datagrams.back().core) {
        sim.send(request_frame(datagrams.back().core, id));
      } else {
        if (random.below(40) == 0) frame = damaged(frame, random);
        sim.send(frame);
      }
      reference_frames.push_back(std::move(frame));
      done += datagrams.back().operations;
    }
    const uint64_t before = sim.cycles();
    if (!sim.run_until_idle()) {
      std::printf("the core hangs; %llu operations, seed %u\n",
                  static_cast<unsigned long long>(done), options.seed);
      return 1;
    }
    cycles += sim.cycles() - before;
    if (!compare(datagrams, reference.run(reference_frames), sim.take(), cas)) {
      std::printf("after %llu operations, seed %u\n", static_cast<unsigned long long>(done),
                  options.seed);
      return 1;
    }
    if (random.below(10) == 0) {
      const uint32_t seconds = 1 + random.below(6);
      reference.advance(seconds);
      sim.advance(seconds);
    }
  }
  std::printf(
      "%llu operations agree: %llu cycles, %u hits, %u misses, %u stores, %u cycles stalled by "
      "hazards\n",
      static_cast<unsigned long long>(done), static_cast<unsigned long long>(cycles),
      sim.counter(kHits), sim.counter(kMisses), sim.counter(kStores), sim.counter(kHazardCycles));
  return 0;
}

}  // namespace
}  // namespace warpcache::rtl

int main(int argc, char** argv) {
  warpcache::rtl::Options options;
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string word = argv[i];
    const auto number = static_cast<uint64_t>(std::atoll(argv[i + 1]));
    if (word == "--operations") options.operations = number;
    if (word == "--seed") options.seed = static_cast<uint32_t>(number);
    if (word == "--hold") options.hold = static_cast<uint32_t>(number);
    if (word == "--latency" && i + 2 < argc) {
      options.latency_min = static_cast<uint32_t>(number);
      options.latency_max = static_cast<uint32_t>(std::atoi(argv[i + 2]));
    }
  }
  return warpcache::rtl::run(options);
}
