// SPDX-License-Identifier: Apache-2.0
//
// The CUDA engine's part for Ethernet frames: bursts run on the GPU, several at a time; packets
// that the GPU leaves to the host run afterwards, as messages.
#include <algorithm>
#include <new>
#include <utility>

#include "engine/cuda/messages/cuda_engine.h"

namespace warpcache::engine::cuda {

namespace {

// Messages of the host's packets in one batch: more than the largest datagram.
constexpr uint32_t kHostInputBytes = 1024 * 1024;

}  // namespace

std::string CudaEngine::open_packets(const PacketSettings& settings) {
  PacketRunnerConfig config;
  config.udp_port = settings.udp_port;
  config.item_size_max = config_.item_size_max;
  config.cas_enabled = config_.cas_enabled;
  config.jobs = config_.jobs;
  config.copied_packets_min = config_.copied_packets_min;
  for (uint32_t i = 0; i < config_.packet_bursts; ++i) {
    std::unique_ptr<PacketRunner> runner;
    std::string failure = PacketRunner::create(config, store_, faults_, counters_, &runner);
    if (!failure.empty()) return failure;
    idle_runners_.push_back(runner.get());
    packet_runners_.push_back(std::move(runner));
  }
  packets_running_.reserve(config_.packet_bursts);
  const protocol::FrameLimits limits = {config_.item_size_max, UINT32_MAX, config_.cas_enabled,
                                        settings.protocol};
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

void CudaEngine::submit_packets(net::PacketBurst* burst) {
  WC_ASSERT(!idle_runners_.empty());
  burst->replies_dropped = 0;
  PacketRunner* const runner = idle_runners_.back();
  idle_runners_.pop_back();
  packets_running_.push_back({burst, runner});
  runner->begin(*burst);
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
  idle_runners_.push_back(running.runner);
  return running.burst;
}

void CudaEngine::finish_packets(const PacketsRunning& running) {
  net::PacketBurst& burst = *running.burst;
  if (!running.runner->finish() || !running.runner->has_host_packets()) return;
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

void CudaEngine::release_device() {
  runner_.release_device();
  for (const auto& runner : packet_runners_) runner->release_device();
}

}  // namespace warpcache::engine::cuda
