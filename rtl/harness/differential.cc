// SPDX-License-Identifier: Apache-2.0
//
// rtl_differential [--operations N] [--seed N] [--hold PERCENT] [--latency MIN MAX] [--keys N]:
// random datagrams, the same to the core and to the CPU engine (src/engine), and the replies
// compared byte by byte. With few keys operations often follow a write to the same one that is
// under way. A core with a host has an engine of its own there, which gets the frames that the core
// passes on and whose replies come in any order with the core's.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "datagrams.h"
#include "frames.h"
#include "reference.h"
#include "shape.h"
#include "sim.h"

namespace warpcache::rtl {
namespace {

struct Options {
  uint64_t operations = 100'000;
  uint32_t seed = 1;
  uint32_t hold = 0;
  uint32_t latency_min = 30;
  uint32_t latency_max = 100;
  uint32_t keys = 120;
};

// The frames that a core with a host has passed on, and their replies: false if one of them is not
// what has been sent, or comes in another order. `next`: of `sent`, the first one that may come.
bool serve_host(Sim& sim, Reference& host, const std::vector<std::string>& sent, size_t& next,
                uint64_t& passed) {
  for (const std::string& frame : sim.take_for_host()) {
    while (next < sent.size() && sent[next] != frame) ++next;
    if (next == sent.size()) {
      std::printf("the host gets a frame that has not been sent, or late\n");
      return false;
    }
    ++next;
    ++passed;
    for (const std::string& reply : host.run({frame})) sim.send_from_host(reply);
  }
  return true;
}

// Frames in the order of their requests, each of which has its number as its id.
std::vector<std::string> by_request(std::vector<std::string> frames) {
  const auto id = [](const std::string& frame) {
    return static_cast<uint8_t>(frame[42]) << 8 | static_cast<uint8_t>(frame[43]);
  };
  std::stable_sort(frames.begin(), frames.end(),
                   [&](const std::string& a, const std::string& b) { return id(a) < id(b); });
  return frames;
}

int run(const Options& options) {
  constexpr uint32_t kDatagramsMax = 60;  // of a burst
  Reference reference;
  std::unique_ptr<Reference> host;
  if (kHasHost) host = std::make_unique<Reference>();
  uint64_t passed = 0;  // to the host
  SimConfig config;
  config.hold_percent = options.hold;
  config.seed = options.seed;
  config.latency_min = options.latency_min;
  config.latency_max = options.latency_max;
  Sim sim(config);
  sim.write_register(0, reference.now());
  sim.write_register(1, reference.unix_start());
  std::map<std::string, CasPair> cas;
  Generator generator(options.seed, cas, 'k', true, options.keys);
  Random random(options.seed + 1);
  uint64_t done = 0;
  uint64_t cycles = 0;
  while (done < options.operations) {
    std::vector<Datagram> datagrams;
    std::vector<std::string> reference_frames;
    std::vector<std::string> sent;
    size_t next = 0;
    const uint32_t count = 1 + random.below(kDatagramsMax);
    for (uint32_t i = 0; i < count; ++i) {
      datagrams.push_back(generator.next());
      const auto id = static_cast<uint16_t>(i);
      std::string frame = request_frame(datagrams.back().reference, id);
      if (datagrams.back().reference != datagrams.back().core) {
        sent.push_back(request_frame(datagrams.back().core, id));
      } else {
        if (random.below(40) == 0) frame = damaged(frame, random);
        sent.push_back(frame);
      }
      sim.send(sent.back());
      reference_frames.push_back(std::move(frame));
      done += datagrams.back().operations;
    }
    const uint64_t before = sim.cycles();
    // The host answers while the core is busy.
    while (kHasHost && sim.frames_queued() != 0) {
      sim.step();
      if (sim.cycles() % 512 == 0 && !serve_host(sim, *host, sent, next, passed)) return 1;
    }
    bool ends = sim.run_until_idle();
    if (kHasHost && ends) ends = serve_host(sim, *host, sent, next, passed) && sim.run_until_idle();
    if (!ends) {
      std::printf("the core hangs; %llu operations, seed %u\n",
                  static_cast<unsigned long long>(done), options.seed);
      return 1;
    }
    cycles += sim.cycles() - before;
    if (!compare(datagrams, reference.run(reference_frames),
                 kHasHost ? by_request(sim.take()) : sim.take(), cas)) {
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
  if (kHasHost)
    std::printf("%llu frames passed to the host\n", static_cast<unsigned long long>(passed));
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
    if (word == "--keys") options.keys = static_cast<uint32_t>(number);
    if (word == "--latency" && i + 2 < argc) {
      options.latency_min = static_cast<uint32_t>(number);
      options.latency_max = static_cast<uint32_t>(std::atoi(argv[i + 2]));
    }
  }
  return warpcache::rtl::run(options);
}
