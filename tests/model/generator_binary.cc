// SPDX-License-Identifier: Apache-2.0
#include "client/codec/binary.h"
#include "model/generator.h"

namespace warpcache::model {

namespace {

std::string big_endian(uint64_t number, size_t size) {
  std::string bytes;
  client::append_big(number, size, &bytes);
  return bytes;
}

size_t rendered_size(const std::string& text) { return render(text, {}).size(); }

}  // namespace

// `key` and `value` are script text, `extras` bytes, `cas` script text of 8 bytes or nothing.
std::string Generator::packet(uint8_t opcode, const std::string& extras, const std::string& key,
                              const std::string& value, size_t value_size, const std::string& cas) {
  client::BinaryHeader header;
  header.opcode = opcode;
  header.key_size = static_cast<uint16_t>(rendered_size(key));
  header.extras_size = static_cast<uint8_t>(extras.size());
  header.body_size = static_cast<uint32_t>(extras.size() + header.key_size + value_size);
  header.opaque = dice_.one_in(4) ? 0xdeadbeef : 1;
  std::string bytes;
  client::append_header(header, &bytes);
  if (!cas.empty()) bytes.resize(bytes.size() - 8);
  return escape(bytes) + cas + escape(extras) + key + value;
}

std::string Generator::cas8(const std::string& key) {
  if (unframed_round_ == round_) return "";  // an id would become a value, which differs
  const bool guesses = !config_.shared && !config_.wide;
  const std::string near = guesses ? pick({"", "", "", "", "", "", "+1", "-1"}) : "";
  return "{cas8:" + key + near + "}";
}

std::string Generator::binary_store(uint8_t opcode) {
  const std::string name = key();
  size_t size = 0;
  const std::string body = value(size);
  const bool joins = opcode == 0x0e || opcode == 0x0f || opcode == 0x19 || opcode == 0x1a;
  std::string extras;
  if (!joins) {
    const uint32_t flags = dice_.one_in(3) ? 0xdeadbeef : 0;
    extras = big_endian(flags, 4) + big_endian(static_cast<uint32_t>(plain_time()), 4);
  }
  const bool plain = name.find('{') == std::string::npos;
  const std::string cas = plain && dice_.one_in(4) ? cas8(name) : "";
  return packet(opcode, extras, name, body, size, cas);
}

std::string Generator::binary_command() {
  if (config_.wide && dice_.one_in(3)) return wide_packet();
  const uint32_t kind = dice_.roll(100);
  const std::string name = key();
  const bool plain = name.find('{') == std::string::npos;
  const std::string cas = plain && dice_.one_in(4) ? cas8(name) : "";
  if (kind < 25) {
    constexpr uint8_t kGets[] = {0x00, 0x09, 0x0c, 0x0d};
    return packet(kGets[dice_.roll(4)], "", name, "", 0, "");
  }
  if (kind < 55) {
    constexpr uint8_t kStores[] = {0x01, 0x02, 0x03, 0x0e, 0x0f, 0x11, 0x12, 0x13, 0x19, 0x1a};
    return binary_store(kStores[dice_.roll(10)]);
  }
  if (kind < 65) return packet(dice_.one_in(2) ? 0x04 : 0x14, "", name, "", 0, cas);
  if (kind < 80) {
    constexpr uint8_t kCounts[] = {0x05, 0x06, 0x15, 0x16};
    constexpr uint64_t kNumbers[] = {0, 1, 5, 99, 0xffffffffffffffff};
    const uint64_t exptime = dice_.one_in(3) ? 0xffffffff : static_cast<uint64_t>(plain_time());
    const std::string extras = big_endian(kNumbers[dice_.roll(5)], 8) +
                               big_endian(kNumbers[dice_.roll(5)], 8) + big_endian(exptime, 4);
    return packet(kCounts[dice_.roll(4)], extras, name, "", 0, cas);
  }
  if (kind < 90) {
    constexpr uint8_t kTouches[] = {0x1c, 0x1d, 0x1e, 0x23, 0x24};
    const std::string extras = big_endian(static_cast<uint32_t>(plain_time()), 4);
    return packet(kTouches[dice_.roll(5)], extras, name, "", 0, "");
  }
  if (kind < 96) return packet(0x0a, "", "", "", 0, "");
  if (kind == 96 && may_flush_) return packet(dice_.one_in(2) ? 0x08 : 0x18, "", "", "", 0, "");
  if (kind == 97) return packet(static_cast<uint8_t>(0x40 + dice_.roll(64)), "", "", "", 0, "");
  if (kind == 98 && !config_.common) {
    // Anything, with sizes that do not fit.
    const auto opcode = static_cast<uint8_t>(dice_.roll(0x28));
    const std::string extras(dice_.roll(24), '\0');
    return packet(opcode, extras, dice_.one_in(2) ? name : "", "abc", dice_.one_in(9) ? 4 : 3, "");
  }
  if (kind == 99 && dice_.one_in(4))
    return packet(dice_.one_in(2) ? 0x07 : 0x17, "", "", "", 0, "");
  return packet(dice_.one_in(3) && !config_.common ? 0x0b : 0x0a, "", "", "", 0, "");
}

// Opcodes, lengths and numbers of all kinds.
std::string Generator::wide_packet() {
  constexpr uint8_t kExtras[] = {0, 8, 8,  8,  0, 20, 20, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 8, 8,
                                 8, 0, 20, 20, 0, 4,  0,  0, 4, 4, 4, 4, 0, 0, 0, 0, 4, 4};
  constexpr uint32_t kTimes[] = {0,       1,          2,          100,        2592000,
                                 2592001, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  constexpr uint64_t kNumbers[] = {
      0, 1, 9, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff};
  // memcached falls out of step at an unknown opcode with a body.
  const auto opcode = static_cast<uint8_t>(dice_.roll(dice_.one_in(8) ? 256 : sizeof kExtras));
  const bool known = opcode < 0x1f && opcode != 0x1b;
  if (opcode >= sizeof kExtras || (!known && opcode < 0x23)) {
    const std::string rest = dice_.one_in(50) ? "abc" : "";
    return packet(opcode, "", "", rest, rest.size(), "");
  }
  size_t extras_size = kExtras[opcode];
  const bool is_flush = opcode == 0x08 || opcode == 0x18;
  if (is_flush && !may_flush_) return packet(0x0a, "", "", "", 0, "");
  if (dice_.one_in(10)) extras_size = dice_.roll(30);
  std::string extras;
  if (extras_size == 20) {
    extras = big_endian(kNumbers[dice_.roll(6)], 8) + big_endian(kNumbers[dice_.roll(6)], 8);
  } else if (extras_size >= 8) {
    extras = big_endian(kTimes[dice_.roll(10)], 4);
  }
  while (extras.size() < extras_size) extras += big_endian(kTimes[dice_.roll(10)], 4);
  extras.resize(extras_size);

  std::string name = key();
  const bool plain = name.find('{') == std::string::npos;
  const std::string cas = plain && dice_.one_in(3) ? cas8(name)
                          : dice_.one_in(10)       ? escape(big_endian(dice_.roll(3), 8))
                                                   : "";
  if (opcode == 0x10) {
    name = pick({"", "settings", "items", "slabs", "reset", "detail", "detail on", "detail off",
                 "detail dump", "bogus", "extstore", "cachedump", "conns", "sizes_", "{x*300}"});
  } else if (dice_.one_in(10)) {
    name = pick({"", "", "{k*251}", "{k*300}", "{k*2100}", "a b", "\\r\\n", "\\x00", "\\xff\\x7f"});
  }
  const bool has_value = (opcode >= 1 && opcode <= 3) || opcode == 0x0e || opcode == 0x0f ||
                         (opcode >= 0x11 && opcode <= 0x13) || opcode == 0x19 || opcode == 0x1a;
  size_t size = 0;
  std::string body;
  if (has_value != dice_.one_in(20)) body = value(size);
  std::string text = packet(opcode, extras, name, body, size, cas);
  if (!dice_.one_in(20)) return text;
  return with_header_changed(text);
}

// One byte of the header is another.
std::string Generator::with_header_changed(const std::string& text) {
  unframed_round_ = round_;
  constexpr size_t kFields[] = {0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11, 11};
  // The header is script text, of which each escape stands for a byte.
  std::vector<std::string> bytes;
  size_t at = 0;
  while (bytes.size() < 16 && at < text.size()) {
    const size_t size = text[at] != '\\' ? 1 : text[at + 1] == 'x' ? 4 : 2;
    bytes.push_back(text.substr(at, size));
    at += size;
  }
  const size_t field = kFields[dice_.roll(sizeof kFields / sizeof kFields[0])];
  bytes[field] = escape(std::string(1, static_cast<char>(dice_.roll(field == 8 ? 2 : 256))));
  std::string changed;
  for (const std::string& byte : bytes) changed += byte;
  return changed + text.substr(at);
}

}  // namespace warpcache::model
