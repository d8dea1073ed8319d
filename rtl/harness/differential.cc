// SPDX-License-Identifier: Apache-2.0
//
// rtl_differential [--operations N] [--seed N] [--hold PERCENT] [--latency MIN MAX]: random
// datagrams, the same to the core and to the CPU engine (src/engine), and the replies compared byte
// by byte. CAS ids, which a server chooses, are compared by their meaning: each side is asked with
// its own id for an item.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datagrams.h"
#include "engine/testing/rig.h"
#include "engine/testing/store_admin.h"
#include "frames.h"
#include "io/frames/frame_port.h"
#include "sim.h"
#include "worker/frame_worker.h"

namespace warpcache::rtl {
namespace {

// A port that forgets frames when they have been received.
class QueuePort final : public io::FramePort {
 public:
  void add(const std::string& frame) { input_.push_back(frame); }
  std::vector<std::string> take() { return std::exchange(sent_, {}); }
  bool receive(io::FrameBuffer& buffer, int) override {
    while (buffer.has_space() && !input_.empty()) {
      const std::string& frame = input_.front();
      mem_copy(buffer.next(), frame.data(), frame.size());
      buffer.add(static_cast<uint32_t>(frame.size()), 0);
      input_.pop_front();
    }
    return true;
  }
  void send(uint32_t /*burst*/, const io::TxFrame* frames, uint32_t count) override {
    for (uint32_t i = 0; i < count; ++i) {
      sent_.emplace_back(reinterpret_cast<const char*>(frames[i].bytes.data), frames[i].bytes.size);
    }
  }
  void pass_on(const MutableBytes*, uint32_t) override {}
  void stop() override {}
  std::string describe() const override { return "queue"; }
  bool empty() const { return input_.empty(); }

 private:
  std::deque<std::string> input_;
  std::vector<std::string> sent_;
};

engine::RigConfig rig_config() {
  engine::RigConfig config;
  config.store.memory_limit = uint64_t{256} << 20;
  config.store.maintenance_thread = false;
  config.store.manual_clock = true;
  config.store.keep_all = true;
  config.admin_window = std::chrono::nanoseconds(1);
  config.store.seed = 42;
  return config;
}

class Reference {
 public:
  Reference()
      : rig_(engine::make_rig(engine::RigKind::kCpu, rig_config(), &why_)),
        admin_(rig_->store()),
        loop_({}, io::UdpGuard({{{}, 0}}, 1), port_, rig_->make_engine(admin_)) {
    if (!loop_.open().empty()) std::abort();
  }
  std::vector<std::string> run(const std::vector<std::string>& frames) {
    for (const std::string& frame : frames) port_.add(frame);
    do {
      (void)loop_.run_once(0);
    } while (!port_.empty());
    (void)loop_.run_once(0);
    rig_->maintain();
    return port_.take();
  }
  void advance(uint32_t seconds) { rig_->store().set_clock(now() + seconds); }
  uint32_t now() { return rig_->store().clock().now; }
  uint32_t unix_start() { return static_cast<uint32_t>(rig_->store().clock().unix_start); }

 private:
  std::string why_;
  std::unique_ptr<engine::Rig> rig_;
  engine::StoreAdmin admin_;
  QueuePort port_;
  worker::FrameWorker loop_;
};

uint64_t big(const std::string& bytes, size_t at, int count) {
  uint64_t number = 0;
  for (int i = 0; i < count; ++i)
    number = number << 8 | static_cast<uint8_t>(bytes[at + static_cast<size_t>(i)]);
  return number;
}

// Takes the CAS ids out of a reply's payload; `ids`: by key, in the order of the reply.
std::string without_cas(const std::string& payload, const Datagram& datagram,
                        std::vector<std::pair<std::string, uint64_t>>& ids) {
  std::string rest;
  for (size_t at = 0; at < payload.size();) {
    if (static_cast<uint8_t>(payload[at]) == 0x81 && !datagram.keys.empty() &&
        at + 24 <= payload.size()) {
      const size_t body = big(payload, at + 8, 4);
      const size_t opaque = big(payload, at + 12, 4);
      const uint64_t id = big(payload, at + 16, 8);
      if (id != 0 && opaque < datagram.keys.size()) ids.emplace_back(datagram.keys[opaque], id);
      rest +=
          payload.substr(at, 16) + (id != 0 ? "<cas>" : "<no cas>") + payload.substr(at + 24, body);
      at += 24 + body;
      continue;
    }
    const size_t end = payload.find('\n', at);
    if (end == std::string::npos) {
      rest += payload.substr(at);
      break;
    }
    const std::string line = payload.substr(at, end + 1 - at);
    at = end + 1;
    if (line.compare(0, 6, "VALUE ") != 0) {
      rest += line;
      continue;
    }
    const size_t key_end = line.find(' ', 6);
    const size_t flags_end = line.find(' ', key_end + 1);
    const size_t size_end = line.find_first_of(" \r", flags_end + 1);
    const size_t size = std::stoul(line.substr(flags_end + 1, size_end - flags_end - 1));
    if (line[size_end] == ' ')
      ids.emplace_back(line.substr(6, key_end - 6), std::stoull(line.substr(size_end + 1)));
    rest += line.substr(0, size_end) + "\r\n" + payload.substr(at, size);
    at += size;
  }
  return rest;
}

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

struct Options {
  uint64_t operations = 100'000;
  uint32_t seed = 1;
  uint32_t hold = 0;
  uint32_t latency_min = 30;
  uint32_t latency_max = 100;
};

// The payloads of the replies to one request, after memcached's header.
std::string joined(const std::vector<std::string>& frames, size_t& at, uint16_t id) {
  std::string payload;
  while (at < frames.size() && big(frames[at], 42, 2) == id) {
    payload += frames[at].substr(50, big(frames[at], 38, 2) - 16);
    ++at;
  }
  return payload;
}

bool compare(const std::vector<Datagram>& sent, const std::vector<std::string>& want,
             const std::vector<std::string>& got, std::map<std::string, CasPair>& cas) {
  size_t want_at = 0;
  size_t got_at = 0;
  for (size_t i = 0; i < sent.size(); ++i) {
    const auto id = static_cast<uint16_t>(i);
    const size_t want_begin = want_at;
    const size_t got_begin = got_at;
    std::vector<std::pair<std::string, uint64_t>> want_ids;
    std::vector<std::pair<std::string, uint64_t>> got_ids;
    const std::string want_bytes = without_cas(joined(want, want_at, id), sent[i], want_ids);
    const std::string got_bytes = without_cas(joined(got, got_at, id), sent[i], got_ids);
    bool same = want_bytes == got_bytes && want_ids.size() == got_ids.size();
    // Without CAS ids the whole frames are the same.
    if (!sent[i].cas_shown) {
      same = same && std::vector<std::string>(want.begin() + static_cast<long>(want_begin),
                                              want.begin() + static_cast<long>(want_at)) ==
                         std::vector<std::string>(got.begin() + static_cast<long>(got_begin),
                                                  got.begin() + static_cast<long>(got_at));
    }
    if (!same) {
      std::printf("datagram %zu differs\n  sent %s\n  want %s\n  got  %s\n", i,
                  readable(sent[i].core).c_str(), readable(want_bytes).c_str(),
                  readable(got_bytes).c_str());
      return false;
    }
    for (size_t k = 0; k < want_ids.size(); ++k)
      cas[want_ids[k].first] = {want_ids[k].second, got_ids[k].second};
  }
  if (want_at != want.size() || got_at != got.size()) {
    std::printf("frames that answer nothing: %zu of the reference, %zu of the core\n",
                want.size() - want_at, got.size() - got_at);
    return false;
  }
  return true;
}

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
