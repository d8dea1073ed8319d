// SPDX-License-Identifier: Apache-2.0
//
// rtl_fuzz [--frames N] [--seed N] [--hold PERCENT] CASE-FILE...: frames of tests/packets, changed
// at random, one after the other. The core must take each frame, count it once and be idle after
// every burst; a reply must be addressed to who asked; no context may be left; and a request
// afterwards is answered as ever.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "case_files.h"
#include "frames.h"
#include "sim.h"

namespace warpcache::rtl {
namespace {

// Recomputes IPv4's and UDP's checksums, so that changed payloads reach the parser.
void repair(std::string& frame) {
  if (frame.size() < 42 || frame[12] != 8 || frame[13] != 0 || frame[14] != 0x45) return;
  put16(frame, 16, static_cast<uint32_t>(frame.size() - 14));
  put16(frame, 24, 0);
  put16(frame, 24, checksum_of(sum_of(frame.substr(14, 20), 0)));
  put16(frame, 38, static_cast<uint32_t>(frame.size() - 34));
  put16(frame, 40, 0);
}

std::string changed(std::string frame, const std::vector<std::string>& frames, Random& random) {
  const uint32_t changes = random.below(4);
  for (uint32_t i = 0; i < changes; ++i) {
    const auto size = static_cast<uint32_t>(frame.size());
    const uint32_t at = random.below(size);
    switch (random.below(6)) {
      case 0:
        frame[at] ^= static_cast<char>(1 << random.below(8));
        break;
      case 1:
        frame[at] = static_cast<char>(random.next());
        break;
      case 2:
        frame.resize(at + 1);
        break;
      case 3:
        frame.insert(at, random.below(40), static_cast<char>(random.next()));
        break;
      case 4: {
        const std::string& other = frames[random.below(static_cast<uint32_t>(frames.size()))];
        frame = frame.substr(0, at + 1) +
                other.substr(random.below(static_cast<uint32_t>(other.size())));
        break;
      }
      default:
        frame[at] = " \r\n0\x80 -"[random.below(7)];
        break;
    }
  }
  if (random.below(2) == 0) repair(frame);
  constexpr size_t kFrameMax = 1514;
  if (frame.size() > kFrameMax) frame.resize(kFrameMax);
  return frame;
}

int run(uint64_t count, const SimConfig& config, const std::vector<std::string>& files) {
  const std::vector<std::string> frames = frames_of(files);
  if (frames.empty()) {
    std::printf("no frames\n");
    return 1;
  }
  Sim sim(config);
  Random random(config.seed);
  uint64_t sent = 0;
  uint64_t replies = 0;
  while (sent < count) {
    const uint32_t burst = 1 + random.below(100);
    for (uint32_t i = 0; i < burst; ++i, ++sent) {
      sim.send(changed(frames[random.below(static_cast<uint32_t>(frames.size()))], frames, random),
               random.below(50) == 0);
    }
    if (!sim.run_until_idle()) {
      std::printf("the core hangs after %llu frames, seed %u\n",
                  static_cast<unsigned long long>(sent), config.seed);
      return 1;
    }
    for (const std::string& reply : sim.take()) {
      ++replies;
      // Never to a group.
      if (reply.size() < 60 || (reply[0] & 1) != 0 || (reply[6] & 1) != 0) {
        std::printf("a reply to or from a group, or a short one\n");
        return 1;
      }
    }
    uint64_t counted = 0;
    for (const CoreCounter which :
         {kRequests, kNotForUs, kTruncated, kBadChecksum, kFragments, kUnsupported, kMalformed}) {
      counted += sim.counter(which);
    }
    if (sim.counter(kFrames) != sent || counted != sent ||
        sim.counter(kDatagramsDone) != sim.counter(kRequests)) {
      std::printf(
          "after %llu frames %u were counted, with %llu verdicts; %u requests, %u of them done\n",
          static_cast<unsigned long long>(sent), sim.counter(kFrames),
          static_cast<unsigned long long>(counted), sim.counter(kRequests),
          sim.counter(kDatagramsDone));
      return 1;
    }
  }
  sim.send(request_frame("flush_all\r\nset after 5 0 2\r\nok\r\nget after\r\n"));
  if (!sim.run_until_idle()) return 1;
  const std::vector<std::string> last = sim.take();
  const std::string want = "OK\r\nSTORED\r\nVALUE after 5 2\r\nok\r\nEND\r\n";
  if (last.size() != 1 || last[0].substr(50) != want) {
    std::printf("a request afterwards has a wrong answer\n");
    return 1;
  }
  std::printf(
      "%llu frames: %u requests, %llu replies, %u not ours, %u truncated, %u checksums, %u "
      "fragments, %u unsupported, "
      "%u malformed; %llu cycles\n",
      static_cast<unsigned long long>(sent), sim.counter(kRequests),
      static_cast<unsigned long long>(replies), sim.counter(kNotForUs), sim.counter(kTruncated),
      sim.counter(kBadChecksum), sim.counter(kFragments), sim.counter(kUnsupported),
      sim.counter(kMalformed), static_cast<unsigned long long>(sim.cycles()));
  return 0;
}

}  // namespace
}  // namespace warpcache::rtl

int main(int argc, char** argv) {
  std::vector<std::string> files;
  warpcache::rtl::SimConfig config;
  uint64_t count = 20'000;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--frames" && more) {
      count = static_cast<uint64_t>(std::atoll(argv[++i]));
    } else if (word == "--seed" && more) {
      config.seed = static_cast<uint32_t>(std::atoi(argv[++i]));
    } else if (word == "--hold" && more) {
      config.hold_percent = static_cast<uint32_t>(std::atoi(argv[++i]));
    } else {
      files.push_back(word);
    }
  }
  return warpcache::rtl::run(count, config, files);
}
