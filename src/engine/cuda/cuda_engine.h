// SPDX-License-Identifier: Apache-2.0
//
// The engine that runs requests on a GPU: batches of messages (messages/) and bursts of Ethernet
// frames (packets/), several of each under way. Each that is under way has a runner with memory of
// its own. Packets that the GPU leaves to the host run as messages after their burst.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/cuda/engine_parts.h"
#include "engine/cuda/messages/message_runner.h"
#include "engine/cuda/packets/packet_runner.h"
#include "engine/engine.h"
#include "engine/host_packets.h"

namespace warpcache::engine::cuda {

class CudaEngine final : public Engine {
 public:
  // Returns the error as text, or "". `store`, `faults` and `admin` outlive the engine.
  static std::string create(const CudaEngineConfig& config, store::CudaStore& store,
                            gpu::DeviceFaults& faults, AdminHandler& admin,
                            std::unique_ptr<CudaEngine>* engine);

  // Device memory of one engine, rounded up as the driver does. `input_bytes`: of input_memory().
  static uint64_t device_bytes(const CudaEngineConfig& config, uint32_t input_bytes);

  uint32_t batches() const override { return parts_.config.batches; }
  uint8_t* input_memory(uint32_t bytes) override;
  void attach_thread() override;
  void submit(Batch* batch) override;
  Batch* poll() override;
  void release(uint32_t pin) override;
  Status reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) override;
  MutableBytes reservation_window(uint32_t id, uint32_t received, uint32_t after) override;
  MutableBytes device_window(uint32_t id, uint32_t received, uint32_t size) override;
  void device_bytes_came(uint32_t id, uint32_t received, uint32_t size) override;
  void abandon(uint32_t id) override;
  void release_device() override;

  std::string open_packets(const PacketSettings& settings) override;
  uint32_t packet_bursts() const override { return parts_.config.packet_bursts; }
  uint8_t* packet_memory(uint64_t bytes) override;
  std::string use_packet_memory(MutableBytes memory) override;
  void submit_packets(net::PacketBurst* burst) override;
  net::PacketBurst* poll_packets() override;

  const request::Counters& counters() const { return parts_.counters; }
  request::Counters& counters() { return parts_.counters; }

 private:
  struct PacketsRunning {
    net::PacketBurst* burst;
    PacketRunner* runner;
    bool on_host;  // somebody watches: its messages run as a batch, which reports each
  };

  CudaEngine(const CudaEngineConfig& config, store::CudaStore& store, gpu::DeviceFaults& faults,
             AdminHandler& admin);
  std::string start();
  void finish_packets(const PacketsRunning& running);

  EngineParts parts_;
  std::vector<std::unique_ptr<MessageRunner>> message_runners_;

  std::deque<gpu::CudaMemory> packet_memory_;  // pinned
  std::deque<gpu::PinnedMemory> used_memory_;  // of ports
  std::optional<HostPackets> host_packets_;
  std::vector<uint32_t> for_host_;  // packets of a burst
  std::vector<PacketRunner*> idle_packet_runners_;
  std::vector<PacketsRunning> packets_running_;
  // Last, as in the runners: kernels end before memory that they may use is freed.
  std::vector<std::unique_ptr<PacketRunner>> packet_runners_;
};

}  // namespace warpcache::engine::cuda
