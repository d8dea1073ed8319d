// SPDX-License-Identifier: Apache-2.0
//
// Random frames through the NIC cache while its host is slow, and the replies that clients see
// beside those of an engine that takes the same frames in the wire's order: every get finds what
// the last write before it has left.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "case_files.h"
#include "datagrams.h"
#include "nic_host.h"

namespace warpcache::rtl {
namespace {

std::string readable(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    char code[8];
    const auto c = static_cast<uint8_t>(byte);
    std::snprintf(code, sizeof(code), c < 32 || c > 126 ? "\\x%02x" : "%c", c);
    text += code;
  }
  return text;
}

struct Sent {
  std::string frame;
  bool damaged = false;  // the MAC says so
  bool alone = false;    // nothing else is under way when it is sent, or before it is over
};

class Run {
 public:
  explicit Run(const NicOptions& options)
      : options_(options),
        random_(options.seed),
        host_(options.seed + 1, options.delay),
        sim_(config(options), 1) {}

  NicSim& sim() { return sim_; }
  Random& random() { return random_; }

  // Sends them with pauses of chance, and compares the replies. They come in another order than
  // from one engine: what the cache answers does not wait for the host.
  bool play(const std::vector<Sent>& frames) {
    std::vector<std::string> want;
    for (const Sent& sent : frames) {
      if (sent.alone && !settle(sim_, host_)) return fail("it hangs");
      sim_.wire().send(sent.frame, sent.damaged);
      ++frames_;
      if (sent.damaged) {
        ++damaged_;
      } else {
        for (std::string& reply : answers_of(engine_, sent.frame)) want.push_back(std::move(reply));
      }
      if (sent.alone && !settle(sim_, host_)) return fail("it hangs");
      // All copies are ended before such a frame goes to the host, but a get right behind it may
      // have been looked up before: nobody knows yet that the write is done.
      if (is_tcp(sent.frame)) pass_on();
      for (uint32_t i = random_.below(4) == 0 ? random_.below(400) : 0; i > 0; --i) {
        sim_.step();
        host_.step(sim_);
      }
    }
    if (!settle(sim_, host_)) return fail("it hangs");
    got_ = sim_.wire().take();
    std::vector<std::string> got = got_;
    std::sort(want.begin(), want.end());
    std::sort(got.begin(), got.end());
    if (want != got) {
      std::vector<std::string> lacks;
      std::vector<std::string> more;
      std::set_difference(want.begin(), want.end(), got.begin(), got.end(),
                          std::back_inserter(lacks));
      std::set_difference(got.begin(), got.end(), want.begin(), want.end(),
                          std::back_inserter(more));
      for (const std::string& reply : lacks) std::printf("  want %s\n", readable(reply).c_str());
      for (const std::string& reply : more) std::printf("  got  %s\n", readable(reply).c_str());
      return fail("a reply differs");
    }
    const uint64_t answered = sim_.counter(kAnswered);
    const uint64_t forwarded = sim_.counter(kForwarded);
    if (answered + forwarded + damaged_ != frames_ || host_.taken() != forwarded)
      return fail("a frame was lost");
    return true;
  }
  // The replies to the last frames, in their order.
  const std::vector<std::string>& got() const { return got_; }
  void seconds(uint32_t count) {
    advance(sim_, host_, count);
    engine_.advance(count);
  }
  bool fail(const char* what) {
    std::printf("%s after %llu frames, seed %u\n", what, static_cast<unsigned long long>(frames_),
                options_.seed);
    return false;
  }
  void report(uint64_t operations) {
    std::printf(
        "%llu operations agree: %llu frames, %u answered, %u forwarded, %u filled, %u fills dead, "
        "%u flushes; %llu cycles\n",
        static_cast<unsigned long long>(operations), static_cast<unsigned long long>(frames_),
        sim_.counter(kAnswered), sim_.counter(kForwarded), sim_.counter(kFilled),
        sim_.counter(kFillDead), sim_.counter(kFlushed),
        static_cast<unsigned long long>(sim_.cycles()));
  }
  uint64_t frames() const { return frames_; }

 private:
  static SimConfig config(const NicOptions& options) {
    SimConfig config;
    config.seed = options.seed;
    config.hold_percent = options.hold;
    return config;
  }

  // Until the cache has nothing more to do; the host may have.
  void pass_on() {
    constexpr int kQuietCycles = 60;
    for (int quiet = 0; quiet < kQuietCycles; quiet = sim_.idle() ? quiet + 1 : 0) {
      sim_.step();
      host_.step(sim_);
    }
  }

  NicOptions options_;
  Random random_;
  NicHost host_;
  NicSim sim_;
  Reference engine_;
  std::vector<std::string> got_;
  uint64_t frames_ = 0;
  uint64_t damaged_ = 0;
};

// The CAS ids that replies of text show, by key.
void learn(const std::vector<std::string>& replies, std::map<std::string, CasPair>& cas) {
  for (const std::string& reply : replies) {
    const size_t end = reply.find("\r\n");
    if (reply.size() < 58 || reply.compare(50, 6, "VALUE ") != 0 || end == std::string::npos)
      continue;
    const std::string line = reply.substr(56, end - 56);
    const size_t key_end = line.find(' ');
    const size_t size_at = line.find(' ', key_end + 1);
    const size_t id_at = line.find(' ', size_at + 1);
    if (id_at == std::string::npos) continue;
    const uint64_t id = std::stoull(line.substr(id_at));
    cas[line.substr(0, key_end)] = {id, id};
  }
}

// Gets of few keys, and writes of them in each way in which they may come.
std::string busy_frame(Random& random, uint16_t id) {
  const std::string key =
      "b" + std::to_string(random.below(12)) + std::string(random.below(2) * 9, 'y');
  const std::string value(random.below(30), static_cast<char>('a' + random.below(26)));
  const std::string set = "set " + key + " " + std::to_string(random.below(99)) + " 0 " +
                          std::to_string(value.size()) + "\r\n" + value + "\r\n";
  switch (random.below(32)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return request_frame(set, id);
    case 4:
      return request_frame("get " + key + "\r\n" + set, id);
    case 5:
      return request_frame("delete " + key + "\r\n", id);
    case 6:
      return request_frame("append " + key + " 0 0 1 noreply\r\nz\r\n", id);
    case 7:
      return random.below(8) == 0 ? tcp_frame(set) : request_frame("gets " + key + "\r\n", id);
    case 8:
      return request_frame(
          random.below(12) == 0 ? "ms " + key + " 2\r\nhi\r\n" : "get " + key + " x\r\n", id);
    case 9:
    case 10:
    case 11:
    case 12:
      return request_frame("gets " + key + "\r\n", id);
    case 13:
    case 14: {
      std::string header("\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
      header[1] = static_cast<char>(random.below(2) * 0x0c);
      header[3] = static_cast<char>(key.size());
      header[11] = static_cast<char>(key.size());
      return request_frame(header + key, id);
    }
    default:
      return request_frame("get " + key + "\r\n", id);
  }
}

// Gives a request its own id, since the rule is that a client uses none twice at the same time; its
// checksum stays right, or wrong. False if the id is not where it is in most frames.
bool renumber(std::string& frame, uint16_t id) {
  const auto word = [&](size_t at) {
    return static_cast<uint32_t>(static_cast<uint8_t>(frame[at])) << 8 |
           static_cast<uint8_t>(frame[at + 1]);
  };
  if (frame.size() < 50 || word(12) != 0x0800 || frame[14] != 0x45 || frame[23] != 17) return false;
  if (word(40) != 0) {
    const uint32_t sum = checksum_of((~word(40) & 0xffff) + (~word(42) & 0xffff) + id);
    put16(frame, 40, sum == 0 ? 0xffff : sum);
  }
  put16(frame, 42, id);
  return true;
}

}  // namespace

int run_operations(const NicOptions& options) {
  Run run(options);
  Random& random = run.random();
  std::map<std::string, CasPair> cas;
  Generator generator(options.seed, cas);
  uint64_t operations = 0;
  while (operations < options.count) {
    std::vector<Sent> frames;
    // Few bursts are of all commands: some of these end all copies.
    const bool of_all = random.below(4) == 0;
    const uint32_t count = 1 + random.below(300);
    for (uint32_t i = 0; i < count; ++i) {
      const auto id = static_cast<uint16_t>(i);
      if (of_all && random.below(3) == 0) {
        const Datagram datagram = generator.next();
        std::string frame = request_frame(datagram.core, id);
        if (random.below(40) == 0) frame = damaged(frame, random);
        frames.push_back({frame});
        operations += datagram.operations;
      } else {
        frames.push_back({busy_frame(random, id)});
        ++operations;
      }
    }
    if (!run.play(frames)) return 1;
    learn(run.got(), cas);
    if (random.below(8) == 0) run.seconds(1 + random.below(3));
  }
  run.report(operations);
  return 0;
}

int run_damaged(const NicOptions& options) {
  Run run(options);
  Random& random = run.random();
  const std::vector<std::string> known = frames_of(options.files);
  if (known.empty()) return run.fail("no frames") ? 0 : 1;
  while (run.frames() < options.count) {
    std::vector<Sent> frames;
    const uint32_t count = 1 + random.below(100);
    for (uint32_t i = 0; i < count; ++i) {
      std::string frame = known[random.below(static_cast<uint32_t>(known.size()))];
      const bool alone = !renumber(frame, static_cast<uint16_t>(i));
      if (frame.size() > 50 && random.below(3) != 0) frame = damaged(frame, random);
      frames.push_back({frame, random.below(50) == 0, alone});
    }
    for (uint32_t i = 0; i < count / 4; ++i)
      frames.insert(frames.begin() + random.below(static_cast<uint32_t>(frames.size())),
                    {busy_frame(random, static_cast<uint16_t>(i + 1000))});
    if (!run.play(frames)) return 1;
  }
  const uint32_t before = run.sim().counter(kAnswered);
  if (!run.play({{request_frame("set after 5 0 2\r\nok\r\n")}}) ||
      !run.play({{request_frame("get after\r\n")}}) ||
      !run.play({{request_frame("get after\r\n")}}))
    return 1;
  if (run.sim().counter(kAnswered) != before + 1) return run.fail("a get is not answered") ? 0 : 1;
  run.report(run.frames());
  return 0;
}

}  // namespace warpcache::rtl
