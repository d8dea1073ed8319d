// SPDX-License-Identifier: Apache-2.0
#include "model/sent.h"

namespace warpcache::model {

namespace {

constexpr size_t kKeySizeMax = 250;
constexpr size_t kLongValue = 8192;  // two of them make one that is too long for a number

}  // namespace

bool read_header(const std::string& packet, Header& header) {
  if (packet.size() < kBinaryHeaderSize || packet[0] != '\x80') return false;
  const auto byte = [&packet](size_t at) { return size_t{static_cast<uint8_t>(packet[at])}; };
  header.opcode = static_cast<uint8_t>(packet[1]);
  header.key_size = byte(2) << 8 | byte(3);
  header.extras_size = byte(4);
  header.body_size = byte(8) << 24 | byte(9) << 16 | byte(10) << 8 | byte(11);
  return true;
}

bool gets_long_key(const std::string& bytes) {
  size_t word = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    word = bytes[at] == ' ' || bytes[at] == '\r' || bytes[at] == '\n' ? 0 : word + 1;
    if (word > kKeySizeMax && (bytes.starts_with("get") || bytes.starts_with("gat"))) return true;
  }
  return false;
}

void History::add(const std::string& bytes) {
  long_value = long_value || bytes.size() > kLongValue;
  Header header;
  if (read_header(bytes, header)) {
    const bool flushes = header.opcode == 0x08 || header.opcode == 0x18;
    flush = flush || flushes;
    delayed_flush = delayed_flush || (flushes && header.extras_size == 4);
    count = count || header.opcode == 0x05 || header.opcode == 0x06 || header.opcode == 0x15 ||
            header.opcode == 0x16;
    return;
  }
  const size_t at = bytes.find("flush_all");
  flush = flush || at != std::string::npos;
  const size_t delay = at == std::string::npos ? at : bytes.find_first_not_of(' ', at + 9);
  delayed_flush =
      delayed_flush || (delay != std::string::npos && bytes[delay] >= '1' && bytes[delay] <= '9');
  refused_gat = refused_gat || (bytes.starts_with("gat") && gets_long_key(bytes));
  timed_count = timed_count ||
                (bytes.starts_with("ma ") &&
                 (bytes.find(" T") != std::string::npos || bytes.find(" E") != std::string::npos));
  for (const char* command : {"incr ", "decr ", "ma "}) {
    count = count || bytes.find(command) != std::string::npos;
  }
}

}  // namespace warpcache::model
