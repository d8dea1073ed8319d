// SPDX-License-Identifier: Apache-2.0
//
// Fixed workloads for counting the instructions of a thread of warpcache-load that sends frames.
// Its port is in memory, and answers each get at once. bench/instructions/run --load counts the
// instructions inside Worker::load() with callgrind, without those of the port. The program also
// says how many nanoseconds of CPU time a request took, of the load and of the port.
#include <fmt/core.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/mem.h"
#include "instructions/workloads.h"
#include "io/frames/frame_port.h"
#include "load/frame_worker.h"
#include "net/packet.h"

namespace warpcache::bench {
namespace {

constexpr uint32_t kKeys = 1024;  // the first two digits of a key tell its number
constexpr uint32_t kIp = net::kEthernetHeaderSize;
constexpr uint32_t kUdp = kIp + net::kIpv4HeaderSize;
constexpr uint32_t kPayload = kUdp + net::kUdpProtocolHeaderSize;
constexpr uint32_t kBody = kPayload + load::DatagramHeader::kSize;
constexpr uint32_t kServerAddress = 0x0200090a;
constexpr uint32_t kClientAddress = 0x0100090a;
constexpr uint16_t kServerPort = 11211;

struct Workload {
  std::string sizes = "fixed:16:2";
  std::string distribution = "uniform";
  uint32_t multiget = 1;
  double sets = 0;
  double verify_share = 0.1;
};

std::map<std::string, Workload> workloads() {
  return {{"get by load", {}},
          {"get by load, none verified", {.verify_share = 1e-9}},
          {"get by load, all verified", {.verify_share = 1}},
          {"get by load, zipf", {.distribution = "zipf:0.99"}},
          {"get by load, keys of 4 sizes", {.sizes = "keys:2:16=1,32=1,64=1,128=1"}},
          {"get by load, 24 keys", {.multiget = 24}},
          {"set by load", {.sets = 1}},
          {"half sets by load", {.sets = 0.5}}};
}

// Answers each request at once: a get by the key's value, a set by STORED.
class AnsweringPort final : public io::FramePort {
 public:
  explicit AnsweringPort(const load::Keyspace& keys) : memory_(size_t{kSlots} * kSlotBytes) {
    for (uint32_t id = 0; id < kKeys; ++id) values_.push_back(value_of(keys, id));
    std::memset(head_.data(), 2, kIp - 2);
    store_big16(&head_[kIp - 2], net::kEtherTypeIpv4);
    head_[kIp] = 0x45;
    head_[kIp + 8] = 64;
    head_[kIp + 9] = net::kIpProtocolUdp;
    std::memcpy(&head_[kIp + 12], &kServerAddress, 4);
    std::memcpy(&head_[kIp + 16], &kClientAddress, 4);
    store_big16(&head_[kUdp], kServerPort);
    head_[kPayload + 5] = 1;
  }

  MutableBytes memory() const override { return {const_cast<uint8_t*>(memory_.data()), 1}; }
  __attribute__((noinline)) bool receive(io::FrameBuffer& buffer, int) override;
  __attribute__((noinline)) void send(uint32_t burst, const io::TxFrame* frames,
                                      uint32_t count) override;
  void pass_on(const MutableBytes*, uint32_t) override {}
  void stop() override {}
  std::string describe() const override { return "memory"; }
  uint64_t inside_ns() const { return inside_ns_; }

 private:
  static constexpr uint32_t kSlots = 1024;
  static constexpr uint32_t kSlotBytes = 2048 + 128;
  static constexpr uint32_t kRoom = 64;  // of a value with its line

  struct Value {
    char text[kRoom];
    uint32_t size;
  };
  static Value value_of(const load::Keyspace& keys, uint32_t id);
  // The digits are a to z and 0 to 5.
  static uint32_t digit(char text) {
    return static_cast<uint32_t>(text >= 'a' ? text - 'a' : text - '0' + 26);
  }
  void answer(const uint8_t* request, const char* text, uint32_t size, uint8_t* reply) const;
  uint32_t write_values(const char* text, uint32_t size, char* out) const;

  std::vector<uint8_t> memory_;
  std::array<uint8_t, kBody> head_ = {};
  std::vector<Value> values_;
  std::vector<net::PacketSlot> ready_;
  uint32_t next_ = 0;
  uint64_t inside_ns_ = 0;
};

AnsweringPort::Value AnsweringPort::value_of(const load::Keyspace& keys, uint32_t id) {
  Value made = {};
  char value[kRoom];
  WC_ASSERT(keys.value_size(id) == 2);
  keys.write_value(id, 1, value);
  const std::string text =
      fmt::format(" {} 2\r\n{}\r\n", keys.flags(id, 1), std::string_view(value, 2));
  WC_ASSERT(text.size() <= kRoom);
  std::memcpy(made.text, text.data(), text.size());
  made.size = static_cast<uint32_t>(text.size());
  return made;
}

// `text` begins with the first key.
uint32_t AnsweringPort::write_values(const char* text, uint32_t size, char* out) const {
  char* at = out;
  const char* const end = text + size - 2;
  while (text < end) {
    const auto* const next =
        static_cast<const char*>(std::memchr(text, ' ', static_cast<size_t>(end - text)));
    const char* const key_end = next == nullptr ? end : next;
    const Value& value = values_[digit(text[0]) + digit(text[1]) * 32];
    std::memcpy(at, "VALUE ", 6);
    std::memcpy(at + 6, text, static_cast<size_t>(key_end - text));
    at += 6 + (key_end - text);
    std::memcpy(at, value.text, kRoom);
    at += value.size;
    text = key_end + 1;
  }
  std::memcpy(at, "END\r\n", 5);
  return static_cast<uint32_t>(at + 5 - out);
}

void AnsweringPort::answer(const uint8_t* request, const char* text, uint32_t size,
                           uint8_t* reply) const {
  std::memcpy(reply, head_.data(), kBody);
  std::memcpy(reply + kUdp + 2, request + kUdp, 2);
  std::memcpy(reply + kPayload, request + kPayload, 2);
  auto* const body = reinterpret_cast<char*>(reply + kBody);
  uint32_t body_size = 8;
  if (text[0] == 'g') {
    body_size = write_values(text + 4, size - 4, body);
  } else {
    std::memcpy(body, "STORED\r\n", 8);
  }
  const auto udp_size = static_cast<uint16_t>(kBody - kUdp + body_size);
  store_big16(reply + kIp + 2, static_cast<uint16_t>(kUdp - kIp + udp_size));
  const auto ip_checksum = static_cast<uint16_t>(
      ~net::checksum_fold(net::checksum_add(0, reply + kIp, net::kIpv4HeaderSize)));
  std::memcpy(reply + kIp + 10, &ip_checksum, 2);
  store_big16(reply + kUdp + net::kUdpLengthOffset, udp_size);
  const uint64_t sum = net::udp_pseudo_header_sum(reply, kIp, 4, udp_size);
  const uint16_t checksum = net::udp_checksum(net::checksum_add(sum, reply + kUdp, udp_size));
  std::memcpy(reply + kUdp + net::kUdpChecksumOffset, &checksum, 2);
}

void AnsweringPort::send(uint32_t, const io::TxFrame* frames, uint32_t count) {
  const uint64_t begin = load::steady_now_ns();
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* const request = frames[i].bytes.data;
    const uint32_t offset = next_ * kSlotBytes;
    next_ = (next_ + 1) % kSlots;
    uint8_t* const reply = memory_.data() + offset;
    const uint32_t udp_size = load_big16(request + kUdp + net::kUdpLengthOffset);
    answer(request, reinterpret_cast<const char*>(request + kBody), udp_size - (kBody - kUdp),
           reply);
    const auto size =
        static_cast<uint32_t>(kUdp + load_big16(reply + kUdp + net::kUdpLengthOffset));
    ready_.push_back({offset, std::max(size, net::kEthernetFrameMin)});
  }
  inside_ns_ += load::steady_now_ns() - begin;
}

bool AnsweringPort::receive(io::FrameBuffer& buffer, int) {
  const uint64_t begin = load::steady_now_ns();
  WC_ASSERT(ready_.size() <= buffer.frames_max);
  std::copy(ready_.begin(), ready_.end(), buffer.slots);
  buffer.count = static_cast<uint32_t>(ready_.size());
  ready_.clear();
  inside_ns_ += load::steady_now_ns() - begin;
  return true;
}

double cpu_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

void run(const Workload& workload, uint32_t iterations) {
  load::Options options;
  options.connections = 64;
  options.pipeline = 16;
  options.keys = kKeys;
  options.sets = workload.sets;
  options.multiget = workload.multiget;
  options.verify_share = workload.verify_share;
  options.requests = iterations;
  options.frames = "memory";
  Sizes sizes;
  load::Distribution distribution;
  std::string why;
  WC_ASSERT(Sizes::parse(workload.sizes, &sizes, &why));
  WC_ASSERT(load::Distribution::parse(workload.distribution, &distribution, &why));
  distribution.prepare(kKeys, nullptr);
  const load::Keyspace keys(1, sizes, kKeys);
  std::atomic<bool> stop{false};
  auto owned = std::make_unique<AnsweringPort>(keys);
  const AnsweringPort& port = *owned;
  sockaddr_in client = {};
  sockaddr_in server = {};
  client.sin_addr.s_addr = kClientAddress;
  server.sin_addr.s_addr = kServerAddress;
  store_big16(reinterpret_cast<uint8_t*>(&server.sin_port), kServerPort);
  load::FrameWorker worker(options, keys, &distribution, 0, &stop, std::move(owned), client,
                           server);
  load::Window window;
  window.begin_ns = 0;
  const double begin_ns = cpu_ns();
  const uint64_t begin = load::steady_now_ns();
  worker.load(window);
  const double ns = cpu_ns() - begin_ns;
  const auto passed_ns = static_cast<double>(load::steady_now_ns() - begin);
  const double port_ns = ns * static_cast<double>(port.inside_ns()) / passed_ns;
  const load::Counters& counters = worker.counters();
  const uint64_t requests = counters.requests[0].get() + counters.requests[1].get();
  WC_ASSERT(requests == iterations && worker.failure().empty());
  WC_ASSERT(counters.wrong.get() == 0 && counters.lost.get() == 0);
  WC_ASSERT(counters.hits.get() == counters.requests[0].get() * workload.multiget);
  const auto each = [&](double all) { return all / static_cast<double>(requests); };
  fmt::print("{}\n", requests);
  fmt::print(stderr, "{:.1f} ns a request, and {:.1f} ns of the port\n", each(ns - port_ns),
             each(port_ns));
}

}  // namespace
}  // namespace warpcache::bench

int main(int argc, char** argv) {
  return warpcache::bench::run_named(
      argc, argv, warpcache::bench::workloads(), 1'000'000,
      "Fixed workloads of warpcache-load's frames, to count their instructions", "requests",
      warpcache::bench::run);
}
