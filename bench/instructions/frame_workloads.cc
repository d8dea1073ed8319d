// SPDX-License-Identifier: Apache-2.0
//
// Fixed workloads for counting the instructions of a server's thread of frames: requests come by a
// DPDK device whose queues are rings of this process, and replies go there. "Frames moved" has an
// engine that does nothing, so that only port and worker are counted, as beside a GPU.
// bench/instructions/run --frames counts the instructions inside FrameWorker::run_once() with
// callgrind, those of DPDK's libraries apart.
#include <fmt/core.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "engine/cpu/cpu_engine.h"
#include "engine/testing/store_admin.h"
#include "instructions/workloads.h"
#include "io/frames/dpdk/dpdk_device.h"
#include "io/frames/dpdk/dpdk_eal.h"
#include "net/testing/packets.h"
#include "store/host/store.h"
#include "worker/frame_worker.h"

namespace warpcache::bench {
namespace {

constexpr uint32_t kKeys = 20'000;
constexpr uint32_t kMegabytes = 400;    // for DPDK
constexpr uint32_t kRingFrames = 2048;  // of each ring
constexpr uint32_t kFrameMin = 60;
constexpr uint32_t kFrameGranule = 16;

void must(const std::string& failure) {
  if (failure.empty()) return;
  fmt::print(stderr, "{}\n", failure);
  std::exit(1);
}

// Replies of the smallest size are there, beside the requests, as soon as a burst is.
class StillEngine final : public engine::Engine {
 public:
  explicit StillEngine(uint32_t request_bytes) : reply_at_(net::arena_bytes(request_bytes)) {}

  std::string open_packets(const engine::PacketSettings&) override { return ""; }
  uint32_t packet_bursts() const override { return 1; }
  uint8_t* packet_memory(uint64_t bytes) override {
    memory_.push_back(std::make_unique<uint8_t[]>(bytes + kFrameGranule));
    const auto at = reinterpret_cast<uintptr_t>(memory_.back().get());
    return memory_.back().get() + (kFrameGranule - at % kFrameGranule);
  }
  std::string use_packet_memory(MutableBytes) override { return ""; }
  void submit_packets(net::PacketBurst* burst) override {
    running_ = burst;
    if (burst->results[burst->count - 1].word != 0) return;
    const auto reply = net::PacketResult::done_beside(reply_at_, kFrameMin);
    std::fill(burst->results, burst->results + burst->count, reply);
  }
  net::PacketBurst* poll_packets() override { return std::exchange(running_, nullptr); }

  uint8_t* input_memory(uint32_t) override { return nullptr; }
  void submit(engine::Batch*) override {}
  engine::Batch* poll() override { return nullptr; }
  void release(uint32_t) override {}
  Status reserve(uint8_t, uint32_t, uint32_t*) override { return Status::kTooLarge; }
  MutableBytes reservation_window(uint32_t, uint32_t, uint32_t) override { return {}; }
  void abandon(uint32_t) override {}

 private:
  uint32_t reply_at_;
  std::vector<std::unique_ptr<uint8_t[]>> memory_;
  net::PacketBurst* running_ = nullptr;
};

struct Workload {
  uint32_t burst;
  bool is_still;
  std::function<std::string(std::minstd_rand&)> text;
};

std::string key(uint32_t number) { return fmt::format("key:{:012}", number); }
std::string random_key(std::minstd_rand& random) {
  return key(static_cast<uint32_t>(random() % kKeys));
}

std::map<std::string, Workload> workloads() {
  using Random = std::minstd_rand;
  const auto get = [](Random& r) { return "get " + random_key(r) + "\r\n"; };
  const auto missed = [](Random& r) { return "get no:" + random_key(r).substr(3) + "\r\n"; };
  const auto set = [](Random& r) { return "set " + random_key(r) + " 0 0 2\r\nvv\r\n"; };
  return {{"frames moved, 64 a burst", {64, true, get}},
          {"frames moved, 1024 a burst", {1024, true, get}},
          {"get in a frame", {64, false, get}},
          {"get missed in a frame", {64, false, missed}},
          {"set in a frame", {64, false, set}}};
}

std::string frame_of(const std::string& text) {
  return net::testing::frame_of(std::string("\0\1\0\0\0\1\0\0", 8) + text);
}

// A DPDK device, and what is behind it.
class Wire {
 public:
  Wire() {
    must(io::start_dpdk(kMegabytes, true));
    for (rte_ring** const ring : {&requests_, &replies_}) {
      *ring = rte_ring_create(ring == &requests_ ? "requests" : "replies", kRingFrames,
                              SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
      WC_ASSERT(*ring != nullptr);
    }
    const int number = rte_eth_from_rings("wire", &requests_, 1, &replies_, 1, 0);
    WC_ASSERT(number >= 0);
    device_ = std::make_shared<io::DpdkDevice>(static_cast<uint16_t>(number), "wire", 1, 1);
    must(device_->allocate({}));
    must(device_->start());
    port_ = std::make_unique<io::DpdkPort>(device_, 0);
  }

  io::FramePort& port() { return *port_; }

  void put(const std::vector<std::string>& frames) {
    std::vector<rte_mbuf*> buffers(frames.size());
    const auto count = static_cast<unsigned>(frames.size());
    const int error = rte_pktmbuf_alloc_bulk(device_->buffers(0).received, buffers.data(), count);
    WC_ASSERT(error == 0);
    for (unsigned i = 0; i < count; ++i) {
      std::memcpy(rte_pktmbuf_mtod(buffers[i], void*), frames[i].data(), frames[i].size());
      buffers[i]->data_len = static_cast<uint16_t>(frames[i].size());
      buffers[i]->pkt_len = static_cast<uint32_t>(frames[i].size());
    }
    const unsigned put =
        rte_ring_enqueue_burst(requests_, reinterpret_cast<void**>(buffers.data()), count, nullptr);
    WC_ASSERT(put == count);
  }

  void take(uint32_t count) {
    std::vector<rte_mbuf*> buffers(count);
    const unsigned taken =
        rte_ring_dequeue_burst(replies_, reinterpret_cast<void**>(buffers.data()), count, nullptr);
    WC_ASSERT(taken == count);
    for (const rte_mbuf* const buffer : buffers) WC_ASSERT(buffer->data_len >= kFrameMin);
    rte_pktmbuf_free_bulk(buffers.data(), count);
  }

 private:
  rte_ring* requests_ = nullptr;
  rte_ring* replies_ = nullptr;
  std::shared_ptr<io::DpdkDevice> device_;
  std::unique_ptr<io::DpdkPort> port_;
};

// Stores every key without run_once(), so that the fill is not counted.
void fill(engine::Engine& engine, uint32_t burst_max) {
  constexpr uint32_t kStride = 128;
  std::vector<net::PacketSlot> slots(burst_max);
  net::PacketBurst burst;
  burst.input = engine.packet_memory(uint64_t{burst_max} * kStride);
  burst.replies = engine.packet_memory(uint64_t{burst_max} * kStride);
  burst.reply_bytes = burst_max * kStride;
  std::vector<net::PacketResult> results(burst_max);
  burst.slots = slots.data();
  burst.results = results.data();
  for (uint32_t begin = 0; begin < kKeys; begin += burst.count) {
    burst.count = std::min(burst_max, kKeys - begin);
    burst.input_bytes = burst.count * kStride;
    for (uint32_t i = 0; i < burst.count; ++i) {
      const std::string frame = frame_of("set " + key(begin + i) + " 0 0 2\r\nvv\r\n");
      WC_ASSERT(frame.size() <= kStride);
      std::memcpy(burst.input + size_t{i} * kStride, frame.data(), frame.size());
      slots[i] = {i * kStride, static_cast<uint32_t>(frame.size())};
    }
    engine.submit_packets(&burst);
    WC_ASSERT(engine.poll_packets() == &burst && burst.replies_dropped == 0);
  }
}

void run(const Workload& workload, uint32_t iterations) {
  Wire wire;
  const std::unique_ptr<store::Store> store = make_store();
  engine::StoreAdmin admin(*store);
  engine::CpuEngine cpu_engine({}, *store, admin);
  std::minstd_rand random(1);
  StillEngine still(static_cast<uint32_t>(frame_of(workload.text(random)).size()));
  engine::Engine& engine = workload.is_still ? static_cast<engine::Engine&>(still) : cpu_engine;
  worker::FrameWorkerConfig config;
  config.packets.udp_port = net::testing::kTestPort;
  config.burst_packets_max = workload.burst;
  worker::FrameWorker worker(config, io::UdpGuard({}, 10), wire.port(), engine);
  must(worker.open());
  if (!workload.is_still) fill(engine, workload.burst);
  std::vector<std::string> frames(workload.burst);
  for (uint32_t i = 0; i < iterations; ++i) {
    for (std::string& frame : frames) frame = frame_of(workload.text(random));
    wire.put(frames);
    WC_ASSERT(worker.run_once(0));  // the engine has one burst at a time: it receives and sends
    wire.take(workload.burst);
  }
  fmt::print("{}\n", uint64_t{iterations} * workload.burst);
}

}  // namespace
}  // namespace warpcache::bench

int main(int argc, char** argv) {
  namespace bench = warpcache::bench;
  return bench::run_named(
      argc, argv, bench::workloads(), 100,
      "Runs one workload through a thread of frames and prints its number of requests", "bursts",
      bench::run);
}
