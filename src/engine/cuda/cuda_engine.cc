// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/cuda_engine.h"

#include <algorithm>
#include <new>
#include <utility>

namespace warpcache::engine::cuda {

namespace {

constexpr uint64_t kDeviceRoundingBytes = uint64_t{4} << 20;
// Messages of the host's packets in one batch: more than the largest datagram.
constexpr uint32_t kHostInputBytes = 1024 * 1024;

}  // namespace

CudaEngine::CudaEngine(const CudaEngineConfig& config, store::CudaStore& store,
                       gpu::DeviceFaults& faults, AdminHandler& admin)
    : parts_(config, store, faults, admin) {}

std::string CudaEngine::create(const CudaEngineConfig& config, store::CudaStore& store,
                               gpu::DeviceFaults& faults, AdminHandler& admin,
                               std::unique_ptr<CudaEngine>* engine) {
  std::unique_ptr<CudaEngine> made(new CudaEngine(config, store, faults, admin));
  std::string failure = made->start();
  if (failure.empty()) *engine = std::move(made);
  return failure;
}

std::string CudaEngine::start() {
  std::string refusal = parts_.bodies.start(parts_.config.item_size_max);
  if (!refusal.empty()) return refusal;
  for (uint32_t i = 0; i < parts_.config.batches; ++i) {
    std::string failure = MessageRunner::create(parts_, i, &message_runners_.emplace_back());
    if (!failure.empty()) return failure;
  }
  return "";
}

uint64_t CudaEngine::device_bytes(const CudaEngineConfig& config, uint32_t input_bytes) {
  return config.batches * (MessageRunner::device_bytes(config) + input_bytes) +
         kDeviceRoundingBytes;
}

void CudaEngine::attach_thread() {
  (void)parts_.faults.check(gpu::attach_thread(), "starting the engine's thread");
}

void CudaEngine::release_device() {
  for (const auto& runner : message_runners_) runner->release_device();
  for (const auto& runner : packet_runners_) runner->release_device();
}

// --- Messages

uint8_t* CudaEngine::input_memory(uint32_t bytes) {
  uint8_t* const input = parts_.inputs.add(bytes);
  if (input == nullptr) throw std::bad_alloc();  // at the start, like all memory
  return input;
}

void CudaEngine::submit(Batch* batch) {
  const auto idle = std::find_if(message_runners_.begin(), message_runners_.end(),
                                 [](const auto& runner) { return runner->is_idle(); });
  WC_ASSERT(idle != message_runners_.end());
  (*idle)->begin(batch);
}

Batch* CudaEngine::poll() {
  for (const auto& runner : message_runners_) {
    if (Batch* const batch = runner->poll(); batch != nullptr) return batch;
  }
  return nullptr;
}

void CudaEngine::release(uint32_t pin) {
  for (const auto& runner : message_runners_) {
    if (runner->release(pin)) return;
  }
  WC_ASSERT(false);
}

// A store's kernel and a persistent one of this engine do not run at the same time: see
// JobRunner::store_alone().
Status CudaEngine::reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) {
  release_device();
  return parts_.bodies.reserve(key_size, body_size, id);
}

MutableBytes CudaEngine::reservation_window(uint32_t id, uint32_t received, uint32_t after) {
  return parts_.bodies.window(id, received, after);
}

MutableBytes CudaEngine::device_window(uint32_t id, uint32_t received, uint32_t size) {
  return parts_.bodies.device_window(id, received, size);
}

void CudaEngine::device_bytes_came(uint32_t id, uint32_t received, uint32_t size) {
  parts_.bodies.device_bytes_came(id, received, size);
}

void CudaEngine::abandon(uint32_t id) {
  release_device();
  parts_.bodies.abandon(id);
}

// --- Ethernet frames

std::string CudaEngine::open_packets(const PacketSettings& settings) {
  PacketRunnerConfig config;
  config.udp_port = settings.udp_port;
  config.protocol = settings.protocol;
  config.item_size_max = parts_.config.item_size_max;
  config.cas_enabled = parts_.config.cas_enabled;
  config.jobs = parts_.config.jobs;
  config.jobs.resident = parts_.config.packets_resident;
  config.copied_packets_min = parts_.config.copied_packets_min;
  for (uint32_t i = 0; i < parts_.config.packet_bursts; ++i) {
    std::unique_ptr<PacketRunner> runner;
    std::string failure =
        PacketRunner::create(config, parts_.store, parts_.faults, parts_.counters, &runner);
    if (!failure.empty()) return failure;
    idle_packet_runners_.push_back(runner.get());
    packet_runners_.push_back(std::move(runner));
  }
  packets_running_.reserve(parts_.config.packet_bursts);
  const protocol::FrameLimits limits = {parts_.config.item_size_max, UINT32_MAX,
                                        parts_.config.cas_enabled, settings.protocol};
  host_packets_.emplace(limits, settings.udp_port,
                        MutableBytes{input_memory(kHostInputBytes), kHostInputBytes});
  for_host_.reserve(PacketRunner::kPacketsMax);
  return "";
}

uint8_t* CudaEngine::packet_memory(uint64_t bytes) {
  gpu::CudaMemory& memory = packet_memory_.emplace_back();
  if (!memory.allocate(gpu::CudaMemory::Place::kHost, bytes)) throw std::bad_alloc();
  return memory.data();
}

std::string CudaEngine::use_packet_memory(MutableBytes memory) {
  if (used_memory_.emplace_back().pin(memory)) return "";
  return "the GPU cannot read the memory of the frames";
}

void CudaEngine::submit_packets(net::PacketBurst* burst) {
  WC_ASSERT(!idle_packet_runners_.empty());
  burst->replies_dropped = 0;
  burst->doorbell = {};
  PacketRunner* const runner = idle_packet_runners_.back();
  idle_packet_runners_.pop_back();
  const bool seen_by_host = !burst->on_device && !burst->rung_by_peer;
  const bool on_host = seen_by_host && WC_UNLIKELY(parts_.admin.watches_requests());
  packets_running_.push_back({burst, runner, on_host});
  if (on_host) {
    runner->begin(net::PacketBurst{});
  } else if (!burst->rung_by_peer) {
    runner->begin(*burst);
  } else if (!runner->begin_for_peer(*burst, &burst->doorbell)) {
    burst->drop_all();
    runner->begin(net::PacketBurst{});
  }
}

net::PacketBurst* CudaEngine::poll_packets() {
  // ended() also begins the next step of a burst.
  const auto done =
      std::find_if(packets_running_.begin(), packets_running_.end(),
                   [](const PacketsRunning& running) { return running.runner->ended(); });
  if (done == packets_running_.end()) return nullptr;
  const PacketsRunning running = *done;
  packets_running_.erase(done);
  finish_packets(running);
  idle_packet_runners_.push_back(running.runner);
  return running.burst;
}

void CudaEngine::finish_packets(const PacketsRunning& running) {
  net::PacketBurst& burst = *running.burst;
  if (!running.runner->finish()) return;
  if (WC_UNLIKELY(running.on_host)) return host_packets_->run_all(*this, burst);
  if (!running.runner->has_host_packets()) return;
  for_host_.clear();
  for (uint32_t i = 0; i < burst.count; ++i) {
    if (burst.results[i].state() != PacketState::kHost) continue;
    if (burst.on_device) {
      burst.results[i] = PacketResult::done(0, 0);
      ++burst.replies_dropped;
    } else {
      for_host_.push_back(i);
    }
  }
  host_packets_->run(*this, burst, for_host_, running.runner->reply_used());
}

}  // namespace warpcache::engine::cuda
