// SPDX-License-Identifier: Apache-2.0
//
// Random datagrams of requests, for rtl_differential.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ports.h"
#include "shape.h"

namespace warpcache::rtl {

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
  // `prefix`: the letter that all keys begin with; `flushes`: flush_all is among the commands;
  // `keys`: how many there are.
  Generator(uint32_t seed, std::map<std::string, CasPair>& cas, char prefix = 'k',
            bool flushes = true, uint32_t keys = 120)
      : random_(seed), cas_(cas), prefix_(prefix), flushes_(flushes), keys_(keys) {}

  Datagram next() {
    constexpr size_t kPayloadMax = 1300;
    Datagram datagram;
    datagram.administrative = !flushes_;
    if (kHasHost && random_.below(20) == 0) {
      // Alone in its datagram: the host's.
      add_both(datagram, "stats reset\r\n");
      return datagram;
    }
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
      add_both(datagram, "get none\r\n");
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
    const uint32_t number = random_.below(keys_);
    std::string key = prefix_ + std::to_string(number);
    if (number % 5 == 1) key.resize(8, 'x');
    // What the engine takes and the core does not is left out: also where a header says up to two
    // bytes more.
    constexpr uint32_t kLongest = kKeyMax == 250 ? kKeyMax : kKeyMax - 2;
    if (number % 5 == 2) key.resize(std::min(9 + number % 30, kLongest), 'y');
    if (number % 40 == 3) key.resize(kLongest - number / 40, 'z');
    return key;
  }
  // Additions are short, so that no value grows beyond what the core takes.
  std::string addition() { return value().substr(0, kValueMax < 300 ? 0 : 12); }
  std::string value() {
    const uint32_t kind = random_.below(8);
    if (kind < 3) return std::to_string(random_.next() >> random_.below(64));
    uint32_t size = random_.below(24);
    if (kind == 6) size = random_.below(200);
    if (kind == 7 && random_.below(4) == 0) size = random_.below(600);
    size = std::min(size, kValueMax / 2);
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
    // k1 is a key of the lines above.
    if (const size_t at = line.find("k1"); at != std::string::npos) line[at] = prefix_;
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
  char prefix_;
  bool flushes_;
  uint32_t keys_;
};

// A frame as a bad network delivers it: with other bits, cut, or with more bytes.
inline std::string damaged(std::string frame, Random& random) {
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

}  // namespace warpcache::rtl
