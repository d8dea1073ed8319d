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
  void send(const io::TxFrame* frames, uint32_t count) override {
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

// The ids of one item, by the reference and by the core.
struct CasPair {
  uint64_t reference = 0;
  uint64_t core = 0;
};

// A datagram, as each side gets it.
struct Datagram {
  std::string reference;  // payloads
  std::string core;
  std::vector<std::string> keys;  // of binary requests, by opaque
  bool cas_shown = false;         // its replies have CAS ids
  uint32_t operations = 0;
  bool administrative = false;  // the engine takes one administrative command of a datagram
};

class Generator {
 public:
  Generator(uint32_t seed, std::map<std::string, CasPair>& cas) : random_(seed), cas_(cas) {}

  Datagram next() {
    constexpr size_t kPayloadMax = 1300;
    Datagram datagram;
    const bool binary = random_.below(3) == 0;
    const uint32_t commands = random_.below(3) != 0 ? 1 : 1 + random_.below(12);
    for (uint32_t i = 0; i < commands; ++i) {
      Datagram more = datagram;
      binary ? add_binary(more) : add_text(more);
      if (more.core.size() > kPayloadMax || more.reference.size() > kPayloadMax) break;
      datagram = std::move(more);
    }
    if (datagram.core.empty()) {
      datagram = {};
      add_both(datagram, "get a\r\n");
    }
    // Sometimes cut, or one byte changed; not where the sides' bytes differ.
    if (datagram.core == datagram.reference && random_.below(30) == 0) {
      const uint32_t size = random_.below(static_cast<uint32_t>(datagram.core.size())) + 1;
      datagram.core.resize(size);
      datagram.reference = datagram.core;
    }
    return datagram;
  }

 private:
  void add_both(Datagram& datagram, const std::string& bytes) {
    datagram.core += bytes;
    datagram.reference += bytes;
    ++datagram.operations;
  }
  std::string key() {
    // Few keys, so that they are found; of lengths around a beat, and long ones.
    const uint32_t number = random_.below(120);
    std::string key = "k" + std::to_string(number);
    if (number % 5 == 1) key.resize(8, 'x');
    if (number % 5 == 2) key.resize(9 + number % 30, 'y');
    if (number % 40 == 3) key.resize(250 - number / 40, 'z');
    return key;
  }
  // Additions are short, so that no value grows beyond what the core takes.
  std::string addition() { return value().substr(0, 12); }
  std::string value() {
    const uint32_t kind = random_.below(8);
    if (kind < 3) return std::to_string(random_.next() >> random_.below(64));
    uint32_t size = random_.below(24);
    if (kind == 6) size = random_.below(200);
    if (kind == 7 && random_.below(4) == 0) size = random_.below(600);
    std::string value;
    for (uint32_t i = 0; i < size; ++i) value += static_cast<char>(random_.next() >> 56);
    return value;
  }
  std::string number() {
    return std::to_string(random_.next() >> (random_.below(2) == 0 ? 60 : random_.below(64)));
  }
  std::string time() {
    switch (random_.below(8)) {
      case 0:
        return std::to_string(1 + random_.below(20));
      case 1:
        return random_.below(3) == 0 ? "-1" : "0";
      case 2:
        return std::to_string(2592000 + random_.below(3));
      default:
        return "0";
    }
  }
  std::string flags() {
    return random_.below(2) == 0
               ? "0"
               : std::to_string(static_cast<uint32_t>(random_.next() >> (32 + random_.below(32))));
  }
  std::string noreply() { return random_.below(6) == 0 ? " noreply" : ""; }
  std::string end() { return random_.below(12) == 0 ? "\n" : "\r\n"; }
  std::string blank() { return random_.below(20) == 0 ? "   " : " "; }

  void add_text(Datagram& datagram) {
    static const char* const kStores[] = {"set",     "set",    "set",    "add",
                                          "replace", "append", "prepend"};
    switch (random_.below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: {
        std::string line = random_.below(6) == 0 ? "gets" : "get";
        if (line == "gets") datagram.cas_shown = true;
        const uint32_t keys = random_.below(3) != 0 ? 1 : 1 + random_.below(8);
        for (uint32_t i = 0; i < keys; ++i) line += blank() + key();
        if (random_.below(20) == 0) line += " ";
        return add_both(datagram, line + end());
      }
      case 5: {
        const bool with_cas = random_.below(3) == 0;
        if (with_cas) datagram.cas_shown = true;
        std::string line = (with_cas ? "gats " : "gat ") + time();
        const uint32_t keys = 1 + random_.below(3);
        for (uint32_t i = 0; i < keys; ++i) line += blank() + key();
        return add_both(datagram, line + end());
      }
      case 6:
      case 7:
      case 8:
      case 9:
      case 10: {
        const uint32_t store = random_.below(7);
        const std::string bytes = store >= 5 ? addition() : value();
        return add_both(datagram, std::string(kStores[store]) + blank() + key() + blank() +
                                      flags() + " " + time() + " " + std::to_string(bytes.size()) +
                                      noreply() + end() + bytes + "\r\n");
      }
      case 11: {
        const std::string which = key();
        const std::string bytes = value();
        const CasPair ids =
            random_.below(5) == 0 ? CasPair{~uint64_t{15}, ~uint64_t{15}} : cas_[which];
        const std::string begin =
            "cas " + which + " " + flags() + " 0 " + std::to_string(bytes.size()) + " ";
        const std::string rest = noreply() + "\r\n" + bytes + "\r\n";
        datagram.reference += begin + std::to_string(ids.reference) + rest;
        datagram.core += begin + std::to_string(ids.core) + rest;
        ++datagram.operations;
        return;
      }
      case 12:
      case 13:
        return add_both(datagram, "delete " + key() + noreply() + end());
      case 14:
      case 15:
        return add_both(datagram, (random_.below(2) == 0 ? "incr " : "decr ") + key() + " " +
                                      number() + noreply() + end());
      case 16:
        return add_both(datagram, "touch " + key() + " " + time() + noreply() + end());
      case 17:
        if (datagram.administrative || random_.below(2) == 0)
          return add_both(datagram, "version\r\n");
        datagram.administrative = true;
        if (random_.below(20) == 0) return add_both(datagram, "flush_all" + noreply() + end());
        return add_both(datagram, "verbosity 1" + noreply() + end());
      case 18:
        return add_both(datagram, "mn\r\n");
      default:
        return add_malformed(datagram);
    }
  }
  void add_malformed(Datagram& datagram) {
    static const char* const kLines[] = {
        "",
        "x",
        "ab",
        "abc",
        "hello world",
        "hello noreply",
        " get a",
        "get",
        "get ",
        "gets",
        "gat",
        "gat 0",
        "gat x",
        "gat x a",
        "set k1 0 0",
        "set k1 0 0 x",
        "set",
        "set k1 0 0 -1",
        "set k1 x 0 1\r\na",
        "set k1 0 x 1\r\na",
        "set k1 0 0 1\r\nab",
        "cas k1 0 0 1\r\na",
        "cas k1 0 0 1 x\r\na",
        "cas k1 0 0 1 0\r\na",
        "add k1",
        "incr k1",
        "incr k1 x",
        "incr k1 -1",
        "incr k1 1 noreply",
        "decr k1 x noreply",
        "incr k1 99999999999999999999",
        "touch k1",
        "touch k1 x",
        "touch k1 -",
        "delete",
        "delete k1 0",
        "delete k1 0 noreply",
        "flush_all x",
        "verbosity",
        "verbosity x",
        "averyveryverylongcommand noreply",
        "averyveryverylongcommand with words",
        "getaveryvery",
        "GET a",
        "quit",
        "quit noreply",
    };
    std::string line = kLines[random_.below(sizeof(kLines) / sizeof(kLines[0]))];
    if (random_.below(12) == 0) line = "get " + std::string(251, 'k');
    if (random_.below(12) == 0)
      line = "set " + std::string(251 + random_.below(20), 'k') + " 0 0 1\r\nx";
    if (random_.below(12) == 0) line = "delete " + std::string(251 + random_.below(20), 'k');
    add_both(datagram, line + "\r\n");
  }

  void put(std::string& out, uint64_t number, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(number >> (8 * i));
  }
  void add_binary(Datagram& datagram) {
    static const uint8_t kOpcodes[] = {0x00, 0x00, 0x09, 0x09, 0x0c, 0x0d, 0x01, 0x01, 0x11, 0x02,
                                       0x12, 0x03, 0x13, 0x04, 0x14, 0x05, 0x15, 0x06, 0x16, 0x0e,
                                       0x19, 0x0f, 0x1a, 0x1c, 0x1d, 0x1e, 0x23, 0x24, 0x0a, 0x0b,
                                       0x05, 0x06, 0x08, 0x18, 0x33, 0x1b, 0x07, 0x17};
    uint8_t opcode = kOpcodes[random_.below(sizeof(kOpcodes))];
    if ((opcode == 0x08 || opcode == 0x18) && (datagram.administrative || random_.below(20) != 0))
      opcode = 0x0a;
    if (opcode == 0x08 || opcode == 0x18) datagram.administrative = true;
    std::string which = key();
    std::string extras;
    std::string bytes;
    const uint32_t exptime = static_cast<uint32_t>(std::atoi(time().c_str()));
    switch (opcode) {
      case 0x01:
      case 0x11:
      case 0x02:
      case 0x12:
      case 0x03:
      case 0x13:
        put(extras, std::stoul(flags()), 4);
        put(extras, exptime, 4);
        bytes = value();
        break;
      case 0x0e:
      case 0x19:
      case 0x0f:
      case 0x1a:
        bytes = addition();
        break;
      case 0x05:
      case 0x15:
      case 0x06:
      case 0x16:
        put(extras, random_.next() >> random_.below(64), 8);
        put(extras, random_.next() >> random_.below(64), 8);
        put(extras, random_.below(2) == 0 ? 0xffffffff : exptime, 4);
        break;
      case 0x1c:
      case 0x1d:
      case 0x1e:
      case 0x23:
      case 0x24:
        put(extras, exptime, 4);
        break;
      case 0x07:
      case 0x17:
      case 0x0a:
      case 0x0b:
      case 0x08:
      case 0x18:
        which.clear();
        break;
      default:
        break;
    }
    datagram.cas_shown = true;
    CasPair ids;
    if (random_.below(6) == 0)
      ids = random_.below(4) == 0 ? CasPair{~uint64_t{15}, ~uint64_t{15}} : cas_[which];
    if (which.empty()) ids = {};
    uint32_t body = static_cast<uint32_t>(extras.size() + which.size() + bytes.size());
    uint32_t key_size = static_cast<uint32_t>(which.size());
    // Now and then a header that is wrong.
    if (random_.below(60) == 0) body += random_.below(4);
    if (random_.below(60) == 0) key_size += random_.below(3);
    std::string header;
    header += static_cast<char>(0x80);
    header += static_cast<char>(opcode);
    put(header, key_size, 2);
    header += static_cast<char>(extras.size());
    header += '\0';
    put(header, 0, 2);
    put(header, body, 4);
    put(header, datagram.keys.size(), 4);
    datagram.keys.push_back(which);
    for (const bool core : {false, true}) {
      std::string& out = core ? datagram.core : datagram.reference;
      out += header;
      put(out, core ? ids.core : ids.reference, 8);
      out += extras + which + bytes;
    }
    ++datagram.operations;
  }

  Random random_;
  std::map<std::string, CasPair>& cas_;
};

// A frame as a bad network delivers it: with other bits, cut, or with more bytes.
std::string damaged(std::string frame, Random& random) {
  switch (random.below(4)) {
    case 0:
      frame.resize(1 + random.below(static_cast<uint32_t>(frame.size())));
      break;
    case 1:
      frame.append(random.below(30), static_cast<char>(random.next()));
      break;
    default:
      for (uint32_t i = 1 + random.below(3); i > 0; --i) {
        const uint32_t range = random.below(2) == 0 ? 50 : static_cast<uint32_t>(frame.size());
        const uint32_t at = random.below(range);
        // Two changes can keep the checksum right; then the reply must still name its request.
        if (at != 42 && at != 43) frame[at] ^= static_cast<char>(1 << random.below(8));
      }
      break;
  }
  return frame;
}

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
