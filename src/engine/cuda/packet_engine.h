// SPDX-License-Identifier: Apache-2.0
//
// Whole Ethernet frames on the GPU, after MemcachedGPU and GNoM (SoCC 2015): headers are read,
// requests run and reply frames written there, checksums included. The host sees a packet only when
// it is none of the usual: administrative commands, several commands in a datagram, replies of
// several datagrams. These it runs by a CudaEngine on the same store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/job_runner.h"
#include "request/counters.h"

namespace warpcache::engine::cuda {

struct PacketEngineConfig {
  uint16_t udp_port = 11211;
  uint32_t item_size_max = 1 << 20;  // -I, bytes
  bool cas_enabled = true;           // not -C
  JobRunnerConfig jobs;
  uint32_t input_bytes = 16 * 1024 * 1024;  // of a batch at most
  uint32_t reply_bytes = 32 * 1024 * 1024;  // likewise
};

// Packets, and where their replies go. Frames and replies are in pinned memory of the host, or in
// the device's.
struct PacketBatch {
  const uint8_t* input = nullptr;     // slots count from here; begins at a multiple of 16 bytes
  const PacketSlot* slots = nullptr;  // of the host, in any order
  uint32_t count = 0;
  uint8_t* replies = nullptr;  // begins at a multiple of 16 bytes
  uint32_t reply_bytes = 0;    // room there; at most PacketEngineConfig::reply_bytes are used
  // Of the host: what became of each packet. Its reply frame is `size` bytes (0: none) at `offset`
  // of the replies.
  FrameReply* results = nullptr;
};

// Used by one thread at a time.
class PacketEngine {
 public:
  // Packets of one batch.
  static constexpr uint32_t kPacketsMax = kFramesMax;

  // Returns what is wrong, or "". `store` and `faults` outlive the engine.
  static std::string create(const PacketEngineConfig& config, CudaStore& store,
                            DeviceFaults& faults, std::unique_ptr<PacketEngine>* engine);

  // Runs a batch. False: the device has failed, and nothing may be sent. Waits for it all; what
  // finds no room in the store or for its reply is run again. Afterwards each packet's state is
  // kDone, kQuit, kDropped or kHost. REQUIRES: at most kPacketsMax packets, all within the first
  // input_bytes of the input.
  bool run(const PacketBatch& batch);

  const request::Counters& counters() const { return counters_; }

 private:
  PacketEngine(const PacketEngineConfig& config, CudaStore& store, DeviceFaults& faults)
      : config_(config), store_(store), runner_(config.jobs, store, faults) {}
  std::string start();
  bool run_round(const PacketBatch& batch);
  void take_results(const PacketBatch& batch);
  void fill_job(const PacketBatch& batch, Job& job) const;

  PacketEngineConfig config_;
  CudaStore& store_;
  request::Counters counters_;
  JobRunner runner_;

  CudaMemory input_copy_;  // device
  CudaMemory packets_;     // pinned: PacketSlot, of the round
  CudaMemory reply_copy_;  // device

  std::vector<uint32_t> origin_;  // by packet of the round: the packet of the batch
  uint32_t arena_used_ = 0;
  uint64_t room_wanted_ = 0;  // 0: none
  bool out_of_memory_ = false;
};

}  // namespace warpcache::engine::cuda
