// SPDX-License-Identifier: Apache-2.0
//
// Mutations that know the structure of a stream: they repeat, move, drop and divide whole messages
// and correct lengths, which random mutations of bytes seldom achieve. Half of all mutations are
// random; these use the dictionary.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t size_max);

namespace warpcache::fuzz {

using Units = std::vector<std::string>;

inline constexpr size_t kBinaryHeaderSize = 24;
inline constexpr size_t kSteeringBytes = 54;  // run_stream_target() takes them from the end

// Splits into lines with their ends; the body of a storage command is a separate line.
inline Units split_lines(std::string_view bytes) {
  Units units;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
    units.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end);
  }
  return units;
}

// Splits into binary packets by the lengths in their headers; the last one may be incomplete.
inline Units split_packets(std::string_view bytes) {
  Units units;
  while (!bytes.empty()) {
    size_t size = bytes.size();
    if (size >= kBinaryHeaderSize) {
      uint32_t body = 0;
      for (size_t i = 8; i < 12; ++i) body = body << 8 | static_cast<uint8_t>(bytes[i]);
      size = std::min<size_t>(size, kBinaryHeaderSize + body);
    }
    units.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return units;
}

// Sets the last number of the line to the length of the next line, as in `set k 0 0 5`.
inline void repair_line(Units& units, size_t at) {
  if (at + 1 >= units.size()) return;
  std::string& line = units[at];
  const size_t end = line.find_last_of("0123456789");
  if (end == std::string::npos) return;
  const size_t before = line.find_last_not_of("0123456789", end);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const size_t body = units[at + 1].size();
  line.replace(begin, end + 1 - begin, std::to_string(body > 2 ? body - 2 : body));
}

// Sets the packet's lengths to its size.
inline void repair_packet(Units& units, size_t at) {
  std::string& packet = units[at];
  if (packet.size() < kBinaryHeaderSize) return;
  const size_t body = packet.size() - kBinaryHeaderSize;
  for (size_t i = 0; i < 4; ++i) packet[8 + i] = static_cast<char>(body >> (24 - 8 * i));
  const size_t extras = std::min<size_t>(static_cast<uint8_t>(packet[4]), body);
  const size_t key = std::min<size_t>(static_cast<uint8_t>(packet[3]), body - extras);
  packet[2] = 0;
  packet[3] = static_cast<char>(key);
  packet[4] = static_cast<char>(extras);
}

using Repair = void (*)(Units& units, size_t at);

inline void mutate_units(Units& units, std::mt19937& random, size_t size_max, Repair repair) {
  const size_t at = random() % units.size();
  const size_t other = random() % units.size();
  switch (random() % 6) {
    case 0:
      units.insert(units.begin() + static_cast<std::ptrdiff_t>(other), units[at]);
      break;
    case 1:
      units.erase(units.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 2:
      std::swap(units[at], units[other]);
      break;
    case 3:
      units[at] = units[at].substr(0, random() % (units[at].size() + 1)) +
                  units[other].substr(random() % (units[other].size() + 1));
      repair(units, at);
      break;
    case 4: {
      std::string& unit = units[at];
      const size_t size = unit.size();
      unit.resize(size + std::min<size_t>(64, size_max));
      unit.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(unit.data()), size, unit.size()));
      if (random() % 2 == 0) repair(units, at);
      break;
    }
    default:
      repair(units, at);
  }
}

// For LLVMFuzzerCustomMutator. The first `head` and the last `tail` bytes are not messages.
inline size_t mutate_messages(uint8_t* data, size_t size, size_t size_max, uint32_t seed,
                              Units (*split)(std::string_view), Repair repair, size_t head,
                              size_t tail) {
  std::mt19937 random(seed);
  if (size <= head + tail || random() % 2 == 0) return LLVMFuzzerMutate(data, size, size_max);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Units units = split(std::string_view(bytes).substr(head, size - head - tail));
  mutate_units(units, random, size_max - size, repair);
  std::string out = bytes.substr(0, head);
  for (const std::string& unit : units) out += unit;
  if (out.size() + tail > size_max) out.resize(size_max - tail);
  out += bytes.substr(size - tail);
  std::memcpy(data, out.data(), out.size());
  return out.size();
}

}  // namespace warpcache::fuzz
