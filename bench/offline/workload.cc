// SPDX-License-Identifier: Apache-2.0
#include "offline/workload.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "workload/random.h"

namespace warpcache::offline {

namespace {

// Ethernet, IPv4, UDP, memcached's UDP header.
constexpr uint32_t kIpOffset = 14;
constexpr uint32_t kUdpOffset = 34;
constexpr uint32_t kMessageOffset = 50;
constexpr uint32_t kFrameMin = 60;
constexpr uint16_t kClientPort = 40000;
constexpr uint8_t kClientAddress[4] = {10, 0, 0, 1};
constexpr uint8_t kServerAddress[4] = {10, 0, 0, 2};

// A request with this number of value bytes is one datagram, and the pieces are few.
uint32_t pieces_of(uint32_t value_bytes) {
  const uint32_t pieces = (value_bytes + Workload::kSetValueMax - 1) / Workload::kSetValueMax;
  return std::max(pieces, 1u);
}

enum Purpose : uint64_t { kRank, kKind, kHit, kKeySize };

uint32_t slot_of(size_t message_bytes) {
  const auto bytes = static_cast<uint32_t>(message_bytes) + kMessageOffset;
  return (std::max(bytes, kFrameMin) + 15) / 16 * 16;
}

// A reply of several frames has a header of 16 bytes.
uint32_t reply_slot_of(uint32_t message_bytes) {
  if (message_bytes <= Workload::kDatagramMax) return slot_of(message_bytes);
  const uint32_t full = (message_bytes - 1) / Workload::kDatagramMax;
  return 16 + full * slot_of(Workload::kDatagramMax) +
         slot_of(message_bytes - full * Workload::kDatagramMax);
}

void put16(uint8_t* at, uint32_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}

uint32_t get16(const uint8_t* at) { return static_cast<uint32_t>(at[0]) << 8 | at[1]; }

// RFC 1071, by words of 16 bits.
uint32_t sum16(const uint8_t* data, size_t size, uint32_t sum = 0) {
  for (size_t i = 0; i < size; i += 2) {
    sum += static_cast<uint32_t>(data[i]) << 8 | (i + 1 < size ? data[i + 1] : 0u);
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum;
}

// Over the UDP datagram of an IPv4 frame, with its checksum field.
uint32_t udp_sum(const uint8_t* frame) {
  const uint32_t size = get16(frame + kUdpOffset + 4);
  return sum16(frame + kUdpOffset, size, sum16(frame + kIpOffset + 12, 8, 17 + size));
}

}  // namespace

uint64_t memory_for(const WorkloadConfig& workload) {
  constexpr uint64_t kItemBytes = 80;  // header, index, rounding
  constexpr uint64_t kEtcItem = 600;   // above the average of ETC's items, with the cut
  if (workload.etc) return std::max(uint64_t{64} << 20, 2 * kEtcItem * workload.keys);
  uint64_t key = workload.key_mixture.empty() ? workload.key_size : 0;
  for (const KeySize& size : workload.key_mixture) key = std::max<uint64_t>(key, size.bytes);
  const uint64_t item = key + workload.value_size + kItemBytes;
  // A value that is stored in pieces leaves all its earlier states behind: on average half of it
  // for each piece.
  const uint64_t pieces = pieces_of(workload.value_size);
  return std::max(uint64_t{64} << 20, (pieces + 3) * item / 2 * workload.keys);
}

uint32_t hash_power_for(const WorkloadConfig& workload) {
  constexpr uint64_t kSlotsPerKey = 2;
  return std::max(16u, static_cast<uint32_t>(std::bit_width(kSlotsPerKey * workload.keys - 1)));
}

Workload::Workload(const WorkloadConfig& config) : config_(config), items_(config.seed) {
  if (config.theta > 0) zipf_.emplace(config.keys, config.theta);
  if (config.etc) {
    bench::Sizes sizes;
    std::string why;
    (void)bench::Sizes::parse("etc", &sizes, &why);
    etc_.reserve(config.keys);
    for (uint32_t id = 0; id < config.keys; ++id) {
      const bench::ItemSizes size = sizes.of(config.seed, id);
      etc_.push_back({static_cast<uint16_t>(size.key),
                      static_cast<uint16_t>(std::min(size.value, kSetValueMax))});
    }
  }
  const Sizes most = longest();
  const auto digits = static_cast<uint32_t>(std::to_string(most.value).size());
  const uint32_t keys = config.multiget;
  const uint32_t get = config.ping ? 4 : 3 + keys * (1u + most.key) + 2u;  // "get k\r\n"
  const uint32_t piece = std::min<uint32_t>(most.value, kSetValueMax);
  const uint32_t verb = fill_pieces() > 1 ? 7 : 4;
  const uint32_t set = verb + most.key + 5 + digits + 2 + piece + 2;  // "set k 0 0 n\r\nv\r\n"
  // "VALUE k 0 n\r\n..."
  const uint32_t hits = keys * (6 + most.key + 3 + digits + 2 + most.value + 2) + 5;
  fill_slot_ = slot_of(set);
  request_slot_ = config.set_share == 0   ? slot_of(get)
                  : config.set_share == 1 ? fill_slot_
                                          : std::max(slot_of(get), fill_slot_);
  reply_slot_ = config.ping || config.set_share == 1 ? slot_of(8) : reply_slot_of(hits);
}

Workload::Sizes Workload::longest() const {
  if (!etc_.empty()) {
    Sizes most = {0, 0};
    for (const Sizes& sizes : etc_) {
      most.key = std::max(most.key, sizes.key);
      most.value = std::max(most.value, sizes.value);
    }
    return most;
  }
  uint32_t key = config_.key_mixture.empty() ? config_.key_size : 0;
  for (const KeySize& size : config_.key_mixture) key = std::max(key, size.bytes);
  return {static_cast<uint16_t>(key), static_cast<uint16_t>(config_.value_size)};
}

// Keys that were never stored have the sizes of keys that were.
Workload::Sizes Workload::sizes_of(uint32_t id) const {
  if (!etc_.empty()) return etc_[id % config_.keys];
  const auto value = static_cast<uint16_t>(config_.value_size);
  if (config_.key_mixture.empty()) return {static_cast<uint16_t>(config_.key_size), value};
  double sum = 0;
  for (const KeySize& size : config_.key_mixture) sum += size.weight;
  double point = bench::unit(bench::mix(config_.seed, id, kKeySize)) * sum;
  for (const KeySize& size : config_.key_mixture) {
    point -= size.weight;
    if (point < 0) return {static_cast<uint16_t>(size.bytes), value};
  }
  return {static_cast<uint16_t>(config_.key_mixture.back().bytes), value};
}

Workload::Request Workload::draw(uint64_t number) const {
  const auto point = [this, number](Purpose purpose) {
    return bench::unit(bench::mix(config_.seed, number, purpose));
  };
  Request request{};
  const double rank = point(kRank);
  request.id = zipf_.has_value() ? zipf_->rank_at(rank)
                                 : static_cast<uint32_t>(rank * static_cast<double>(config_.keys));
  request.set = config_.set_share > 0 && point(kKind) < config_.set_share;
  // A miss asks for a key that was never stored.
  if (!request.set && config_.hit_ratio < 1 && point(kHit) >= config_.hit_ratio) {
    request.id += config_.keys;
  }
  return request;
}

bool Workload::is_set(uint64_t number) const { return key(number, 0).set; }

std::string Workload::key_of(uint32_t id) const {
  const uint32_t size = key_size_of(id);
  std::string key(size, '\0');
  items_.write_key(id, size, key.data());
  return key;
}

std::string Workload::value_of(uint32_t id) const {
  const uint32_t size = sizes_of(id).value;
  std::string value(size, '\0');
  items_.write_value(id, 0, size, value.data());
  return value;
}

std::string Workload::store_of(uint32_t id, uint32_t piece) const {
  const std::string value = value_of(id).substr(uint64_t{piece} * kSetValueMax, kSetValueMax);
  return (piece == 0 ? "set " : "append ") + key_of(id) + " 0 0 " + std::to_string(value.size()) +
         "\r\n" + value + "\r\n";
}

std::string Workload::message_of(uint64_t number) const {
  if (config_.ping) return "mn\r\n";
  if (is_set(number)) return store_of(key(number, 0).id, 0);
  std::string text = "get";
  for (uint32_t i = 0; i < config_.multiget; ++i) text += " " + key_of(key(number, i).id);
  return text + "\r\n";
}

std::string Workload::answer_to(uint64_t number) const {
  if (config_.ping) return "MN\r\n";
  if (is_set(number)) return "STORED\r\n";
  std::string text;
  for (uint32_t i = 0; i < config_.multiget; ++i) {
    const uint32_t id = key(number, i).id;
    if (id >= config_.keys) continue;
    const std::string value = value_of(id);
    text += "VALUE " + key_of(id) + " 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n";
  }
  return text + "END\r\n";
}

uint32_t Workload::write_request(uint64_t number, uint8_t* out) const {
  return write_frame(message_of(number), number, out);
}

uint32_t Workload::write_fill(uint32_t id, uint32_t piece, uint8_t* out) const {
  return write_frame(store_of(id, piece), id, out);
}

uint32_t Workload::fill_pieces() const { return pieces_of(longest().value); }

// memcached's header has the lower bits of the request's number.
uint32_t Workload::write_frame(const std::string& message, uint64_t number, uint8_t* out) const {
  const auto udp_bytes = static_cast<uint32_t>(message.size()) + kMessageOffset - kUdpOffset;
  const uint32_t size = std::max(kUdpOffset + udp_bytes, kFrameMin);
  std::memset(out, 0, size);
  out[0] = out[6] = 2;  // locally administered addresses
  out[5] = 2;
  out[11] = 1;
  put16(out + 12, 0x0800);
  uint8_t* ip = out + kIpOffset;
  ip[0] = 0x45;
  put16(ip + 2, 20 + udp_bytes);
  ip[8] = 64;
  ip[9] = 17;
  std::memcpy(ip + 12, kClientAddress, 4);
  std::memcpy(ip + 16, kServerAddress, 4);
  put16(ip + 10, ~sum16(ip, 20));
  uint8_t* udp = out + kUdpOffset;
  put16(udp, kClientPort);
  put16(udp + 2, kPort);
  put16(udp + 4, udp_bytes);
  put16(udp + 8, static_cast<uint32_t>(number) & 0xffff);
  put16(udp + 12, 1);
  std::memcpy(out + kMessageOffset, message.data(), message.size());
  if (config_.udp_checksum) {
    const uint32_t sum = ~udp_sum(out) & 0xffff;
    put16(udp + 6, sum == 0 ? 0xffff : sum);
  }
  return size;
}

uint32_t Workload::sequence_of(Bytes frame) {
  return frame.size < kMessageOffset ? 0 : get16(frame.data + kMessageOffset - 6);
}

bool Workload::carries(Bytes reply, const Datagram& datagram, uint64_t number) const {
  const auto udp_bytes = static_cast<uint32_t>(datagram.text.size) + kMessageOffset - kUdpOffset;
  const uint32_t size = std::max(kUdpOffset + udp_bytes, kFrameMin);
  const uint8_t* at = reply.data;
  if (reply.size != size) return false;
  uint8_t request[kMessageOffset + 512];
  (void)write_frame("", number, request);
  // The reply goes to the sender of the request.
  const bool headers = std::memcmp(at, request + 6, 6) == 0 &&
                       std::memcmp(at + 6, request, 6) == 0 && get16(at + 12) == 0x0800 &&
                       at[kIpOffset] == 0x45 && get16(at + kIpOffset + 2) == 20 + udp_bytes &&
                       at[kIpOffset + 9] == 17 && sum16(at + kIpOffset, 20) == 0xffff &&
                       std::memcmp(at + kIpOffset + 12, kServerAddress, 4) == 0 &&
                       std::memcmp(at + kIpOffset + 16, kClientAddress, 4) == 0;
  const uint8_t* udp = at + kUdpOffset;
  const bool ports =
      get16(udp) == kPort && get16(udp + 2) == kClientPort && get16(udp + 4) == udp_bytes;
  const bool numbers = get16(udp + 8) == (static_cast<uint32_t>(number) & 0xffff) &&
                       get16(udp + 10) == datagram.sequence && get16(udp + 12) == datagram.count &&
                       get16(udp + 14) == 0;
  // The lengths are checked now.
  if (!headers || !ports || !numbers) return false;
  const bool checksum = config_.udp_checksum ? udp_sum(at) == 0xffff : get16(udp + 6) == 0;
  return checksum && std::memcmp(at + kMessageOffset, datagram.text.data, datagram.text.size) == 0;
}

}  // namespace warpcache::offline
