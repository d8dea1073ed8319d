// SPDX-License-Identifier: Apache-2.0
//
// What the runners of a CUDA engine share.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "engine/admin_budget.h"
#include "engine/cuda/messages/incoming_bodies.h"
#include "engine/cuda/runtime/job_runner.h"
#include "engine/engine.h"
#include "request/counters.h"

namespace warpcache::engine::cuda {

struct CudaEngineConfig {
  uint32_t item_size_max = 1 << 20;  // -I, bytes
  bool cas_enabled = true;           // not -C
  JobRunnerConfig jobs;
  uint32_t reply_arena_bytes = 16 * 1024 * 1024;
  // How long the largest values may wait for a pin. After that the answer is a miss.
  uint32_t pin_wait_ms_max = 100;
  AdminBudget::Clock::duration admin_window = AdminBudget::kWindow;
  uint32_t batches = 1;        // of messages, under way at a time
  uint32_t packet_bursts = 2;  // of Ethernet frames, likewise
  // JobRunnerConfig::resident of the kernels for frames; `jobs` has that of those for messages.
  uint32_t packets_resident = 0;
  // Packet bursts of at least this number cross the bus by copy engines: see PacketRunnerConfig.
  uint32_t copied_packets_min = 0;

  // What CudaStoreConfig::engines counts for an engine with this configuration.
  uint32_t runners(bool takes_packets) const {
    return batches + (takes_packets ? packet_bursts : 0);
  }
};

// Memory of Batch::input, and its mirror on the device.
class InputBuffers {
 public:
  // Null: there is not enough memory.
  uint8_t* add(uint32_t bytes) {
    Buffer& buffer = buffers_.emplace_back();
    const bool taken = buffer.host.allocate(gpu::CudaMemory::Place::kHost, bytes) &&
                       buffer.device.allocate(gpu::CudaMemory::Place::kDevice, bytes);
    return taken ? buffer.host.data() : nullptr;
  }
  // REQUIRES: add() has returned `input`.
  uint8_t* mirror_of(const uint8_t* input) const {
    for (const Buffer& buffer : buffers_) {
      if (buffer.host.data() == input) return buffer.device.data();
    }
    WC_ASSERT(false);
    return nullptr;
  }

 private:
  struct Buffer {
    gpu::CudaMemory host;  // pinned
    gpu::CudaMemory device;
  };
  std::deque<Buffer> buffers_;
};

struct EngineParts {
  EngineParts(const CudaEngineConfig& engine_config, store::CudaStore& engine_store,
              gpu::DeviceFaults& engine_faults, AdminHandler& engine_admin)
      : config(engine_config),
        store(engine_store),
        faults(engine_faults),
        admin(engine_admin),
        bodies(engine_store, engine_faults),
        admin_budget(engine_config.admin_window) {}

  CudaEngineConfig config;
  store::CudaStore& store;
  gpu::DeviceFaults& faults;
  AdminHandler& admin;
  request::Counters counters;
  InputBuffers inputs;
  IncomingBodies bodies;
  AdminBudget admin_budget;
};

}  // namespace warpcache::engine::cuda
