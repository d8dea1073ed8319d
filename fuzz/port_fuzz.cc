// SPDX-License-Identifier: Apache-2.0
//
// Bursts of Ethernet frames through a port of frames, its worker, the CPU engine and a store, as in
// the server. The frames that are sent and passed on must not depend on how the port divides its
// frames into bursts, each reply must be one that its client accepts, and each frame is counted
// once. An input is a list of records: a byte of choices, the length of the frame in two bytes, and
// the frame or only the text of a request. The input's last byte chooses the second division.
#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "engine/cpu/cpu_engine.h"
#include "engine/testing/store_admin.h"
#include "fuzz/mutate.h"
#include "io/frames/testing/memory_port.h"
#include "net/packet.h"
#include "net/testing/packets.h"
#include "protocol/framing/udp_frame.h"
#include "store/testing/store_fixture.h"
#include "worker/frame_worker.h"

namespace {

using namespace warpcache;

constexpr size_t kRecordHead = 3;  // the choices, and the length
constexpr size_t kTail = 1;
constexpr uint64_t kStoreBytes = uint64_t{16} << 20;
constexpr size_t kFramesMax = 256;  // of an input, with those that come again

// The choices.
constexpr uint8_t kTimes = 3;     // how often it comes again
constexpr uint8_t kMend = 4;      // its lengths and checksums are put right
constexpr uint8_t kIsText = 8;    // of a request, which gets headers
constexpr uint8_t kIpv6 = 16;     // of those headers
constexpr uint8_t kTags = 32;     // two VLAN tags
constexpr uint8_t kOptions = 64;  // of IPv4, or extension headers of IPv6
constexpr uint8_t kNoChecksum = 128;

std::string request_of(uint8_t choices, uint16_t id, std::string_view text) {
  net::testing::FrameForm form;
  form.ipv6 = (choices & kIpv6) != 0;
  if ((choices & kTags) != 0) form.vlan_tags = {0x88a8, 0x8100};
  if ((choices & kOptions) != 0 && !form.ipv6) form.ip_options = "\x01\x01\x01\x01";
  if ((choices & kOptions) != 0 && form.ipv6) {
    form.extensions = {net::testing::extension_of(net::kIpv6HopByHop),
                       net::testing::extension_of(net::kIpv6Routing, 2)};
  }
  form.checksum = form.ipv6 || (choices & kNoChecksum) == 0;
  std::string header(protocol::kUdpHeaderSize, '\0');
  protocol::compose_udp_header({id, 0, 1}, reinterpret_cast<uint8_t*>(header.data()));
  return net::testing::frame_of(header + std::string(text), form);
}

// REQUIRES: the record has its head.
size_t size_of_record(std::string_view bytes) {
  return size_t{static_cast<uint8_t>(bytes[1])} | size_t{static_cast<uint8_t>(bytes[2])} << 8;
}

std::vector<std::string> frames_of(std::string_view bytes) {
  std::vector<std::string> frames;
  for (uint16_t id = 1; bytes.size() >= kRecordHead && frames.size() < kFramesMax; ++id) {
    const auto choices = static_cast<uint8_t>(bytes[0]);
    const size_t size = size_of_record(bytes);
    bytes.remove_prefix(kRecordHead);
    const std::string_view part = bytes.substr(0, size);
    bytes.remove_prefix(part.size());
    std::string frame =
        (choices & kIsText) != 0 ? request_of(choices, id, part) : std::string(part);
    if ((choices & kIsText) == 0 && (choices & kMend) != 0) {
      net::testing::mend(frame, net::testing::kMendAll);
    }
    if (frame.size() < net::kEthernetHeaderSize) continue;  // a port has none
    for (int left = choices & kTimes; left >= 0; --left) frames.push_back(frame);
  }
  return frames;
}

struct Outcome {
  std::vector<std::string> sent;
  std::vector<std::string> passed_on;
  std::array<uint64_t, 9> counted{};
  bool operator==(const Outcome&) const = default;
};

// The client accepts it.
void check_reply(const std::string& frame) {
  const Bytes bytes = bytes_of(frame);
  WC_ASSERT(frame.size() <= net::kEthernetHeaderSize + 2 * net::kVlanTagSize + 1500);
  const size_t udp = net::testing::l4_offset_of(frame);
  WC_ASSERT(udp + net::kUdpProtocolHeaderSize <= frame.size());
  WC_ASSERT(net::testing::get16(frame, udp) == net::testing::kTestPort);
  net::Packet packet;
  const uint16_t client_port = net::testing::get16(frame, udp + net::kUdpDestinationOffset);
  WC_ASSERT(net::parse_packet(bytes, client_port, packet) == net::PacketVerdict::kRequest);
  WC_ASSERT(packet.payload_size >= protocol::kUdpHeaderSize);
}

Outcome play(const std::vector<std::string>& frames, uint32_t burst) {
  const std::unique_ptr<store::Store> store = store::make_store(store::quiet_config(kStoreBytes));
  engine::StoreAdmin admin(*store);
  engine::CpuEngine engine({}, *store, admin);
  io::MemoryPort port;
  port.set_burst(burst);
  for (const std::string& frame : frames) port.add(frame);
  worker::FrameWorkerConfig config;
  config.burst_packets_max = 64;
  worker::FrameWorker worker(config, io::UdpGuard({}, 10), port, engine);
  WC_ASSERT(worker.open().empty());
  worker.run();
  Outcome outcome;
  for (io::MemoryPort::Frame& frame : port.take_sent()) {
    check_reply(frame.bytes);
    outcome.sent.push_back(std::move(frame.bytes));
  }
  outcome.passed_on = port.take_passed_on();
  const io::FrameCounters& counters = port.counters();
  outcome.counted = {
      counters.requests.get(),    counters.malformed.get(),         counters.not_for_us.get(),
      counters.truncated.get(),   counters.bad_checksum.get(),      counters.fragments.get(),
      counters.unsupported.get(), counters.replies_amplified.get(), counters.replies_dropped.get()};
  uint64_t judged = 0;
  for (size_t i = 0; i < 7; ++i) judged += outcome.counted[i];
  WC_ASSERT(judged == frames.size() && counters.received.get() == frames.size());
  WC_ASSERT(outcome.passed_on.size() ==
            counters.not_for_us.get() + counters.fragments.get() + counters.unsupported.get());
  WC_ASSERT(store->stats().pinned_segments == 0);
  return outcome;
}

// --- The mutator: records are moved, repeated and joined, and their lengths put right.

fuzz::Units split_records(std::string_view bytes) {
  fuzz::Units units;
  while (!bytes.empty()) {
    size_t size = bytes.size();
    if (size >= kRecordHead) {
      const size_t body = size_of_record(bytes);
      size = std::min(size, kRecordHead + body);
    }
    units.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return units;
}

void repair_record(fuzz::Units& units, size_t at) {
  std::string& record = units[at];
  if (record.size() < kRecordHead) record.resize(kRecordHead);
  const size_t body = record.size() - kRecordHead;
  record[1] = static_cast<char>(body);
  record[2] = static_cast<char>(body >> 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= kTail) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size - kTail);
  const std::vector<std::string> frames = frames_of(bytes);
  const Outcome one_by_one = play(frames, 1);
  WC_ASSERT(play(frames, 2 + data[size - 1]) == one_by_one);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned int seed) {
  return fuzz::mutate_messages(data, size, size_max, seed, split_records, repair_record, 0, kTail);
}
