// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "frames.h"

namespace warpcache::rtl {

namespace {

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

// The payloads of the replies to one request, after memcached's header.
std::string joined(const std::vector<std::string>& frames, size_t& at, uint16_t id) {
  std::string payload;
  while (at < frames.size() && big(frames[at], 42, 2) == id) {
    payload += frames[at].substr(50, big(frames[at], 38, 2) - 16);
    ++at;
  }
  return payload;
}

}  // namespace

Reference::Reference()
    : rig_(engine::make_rig(engine::RigKind::kCpu, rig_config(), &why_)),
      admin_(rig_->store()),
      loop_({}, io::UdpGuard({{{}, 0}}, 1), port_, rig_->make_engine(admin_)) {
  if (!loop_.open().empty()) std::abort();
}

std::vector<std::string> Reference::run(const std::vector<std::string>& frames) {
  for (const std::string& frame : frames) port_.add(frame);
  do {
    (void)loop_.run_once(0);
  } while (!port_.empty());
  (void)loop_.run_once(0);
  rig_->maintain();
  return port_.take();
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

}  // namespace warpcache::rtl
