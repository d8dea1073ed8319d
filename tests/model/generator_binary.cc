// SPDX-License-Identifier: Apache-2.0
#include "model/generator.h"

namespace warpcache::model {

namespace {

std::string big_endian(uint64_t number, int size) {
  std::string bytes;
  for (int shift = (size - 1) * 8; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(number >> shift & 0xff);
  }
  return bytes;
}

size_t rendered_size(const std::string& text) { return render(text, {}).size(); }

}  // namespace

// `key` and `value` are script text, `extras` bytes, `cas` script text of 8 bytes or nothing.
std::string Generator::packet(uint8_t opcode, const std::string& extras, const std::string& key,
                              const std::string& value, size_t value_size, const std::string& cas) {
  const size_t key_size = rendered_size(key);
  size_t body = extras.size() + key_size + value_size;
  const std::string opaque = dice_.one_in(4) ? std::string("\xde\xad\xbe\xef") : big_endian(1, 4);
  return escape(big_endian(0x80, 1) + big_endian(opcode, 1) + big_endian(key_size, 2) +
                big_endian(extras.size(), 1) + big_endian(0, 3) + big_endian(body, 4) + opaque) +
         (cas.empty() ? escape(big_endian(0, 8)) : cas) + escape(extras) + key + value;
}

std::string Generator::cas8(const std::string& key) {
  const std::string near = config_.shared ? "" : pick({"", "", "", "", "", "", "+1", "-1"});
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

}  // namespace warpcache::model
