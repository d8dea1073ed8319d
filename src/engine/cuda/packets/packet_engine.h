// SPDX-License-Identifier: Apache-2.0
//
// Whole Ethernet frames on the GPU, after MemcachedGPU and GNoM (SoCC 2015): headers are read,
// requests run and reply frames written there, checksums included. The host sees a packet only when
// it is none of the usual: administrative commands, several commands in a datagram, frames of more
// than 3 KB, values that are chains of segments, and replies that the batch's room never fits.
// These it runs by a CudaEngine on the same store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/runtime/job_runner.h"
#include "request/counters.h"

namespace warpcache::engine::cuda {

struct PacketEngineConfig {
  uint16_t udp_port = 11211;
  uint32_t item_size_max = 1 << 20;  // -I, bytes
  bool cas_enabled = true;           // not -C
  JobRunnerConfig jobs;
  // Batches of at least so many packets cross the bus by copy engines, smaller ones by the kernel's
  // own loads and stores. 0: none do. See docs/decisions/0009-packet-kernel.md for the choice.
  uint32_t copied_packets_min = 0;
  // Of a batch that is copied, at most; a larger one is not.
  uint32_t copied_input_bytes = 16 * 1024 * 1024;
  uint32_t copied_reply_bytes = 16 * 1024 * 1024;
};

// Packets, and where their replies go. All of it is pinned memory of the host (CudaMemory); frames
// and replies may be in the device's.
struct PacketBatch {
  const uint8_t* input = nullptr;  // begins at a multiple of 16 bytes
  uint32_t input_bytes = 0;        // of all frames, a multiple of 16
  uint32_t count = 0;
  // Where the frames lie in the input, in any order. Null: in slots of slot_bytes, one behind the
  // other; what is behind a frame in its slot is ignored.
  const PacketSlot* slots = nullptr;
  uint32_t slot_bytes = 0;
  uint8_t* replies = nullptr;       // begins at a multiple of 16 bytes
  uint32_t reply_bytes = 0;         // room there, at most PacketResult::kArenaMax
  PacketResult* results = nullptr;  // what became of each packet: see ReplyFrames
  bool on_device = false;           // frames and replies
};

// Room that writers may be reserved for their replies beyond what these take.
inline constexpr uint32_t kReservedBytes = 160;  // a packet

// Used by one thread at a time.
class PacketEngine {
 public:
  // Packets of one batch.
  static constexpr uint32_t kPacketsMax = cuda::kPacketsMax;

  // Returns what is wrong, or "". `store` and `faults` outlive the engine.
  static std::string create(const PacketEngineConfig& config, store::CudaStore& store,
                            gpu::DeviceFaults& faults, std::unique_ptr<PacketEngine>* engine);

  // Runs a batch. False: the device has failed, and nothing may be sent. Waits for it all; what
  // finds no room in the store or for its reply is run again. Afterwards each packet is kDone,
  // kDropped or kHost. What is kHost must be run before any reply of the batch is sent: another set
  // may have been answered as if one of these had replaced its value. REQUIRES: at most kPacketsMax
  // packets, and no batch is under way.
  bool run(const PacketBatch& batch);

  // The same in steps, so that one thread can keep several engines busy: the driver lets one launch
  // at a time through, and threads would wait for each other there. What `batch` points to stays
  // until finish() has returned.
  void begin(const PacketBatch& batch);
  // Whether the GPU is through with the batch: then finish() waits for nothing but what must be run
  // again.
  bool ended();
  bool finish();

  // See Engine::release_device().
  void release_device() { runner_.release_device(); }

  const request::Counters& counters() const { return counters_; }

 private:
  PacketEngine(const PacketEngineConfig& config, store::CudaStore& store, gpu::DeviceFaults& faults)
      : config_(config), store_(store), faults_(faults), runner_(config.jobs, store, faults) {}
  std::string start();
  PacketJob& prepare_job(const PacketBatch& batch);
  uint32_t next_combine_round();
  bool is_copied(const PacketBatch& batch) const;
  void begin_in_place(const PacketBatch& batch);
  void begin_copied();
  void begin_copying_back();
  bool copies_ended();
  bool finish_copies();
  bool run_again();
  void collect();
  uint32_t hand_back();

  // Where the batch under way is.
  enum class Stage : uint8_t { kNone, kKernel, kCopyingBack, kEnded };

  PacketEngineConfig config_;
  store::CudaStore& store_;
  gpu::DeviceFaults& faults_;
  request::Counters counters_;
  PacketBatch batch_;  // the latest
  Stage stage_ = Stage::kNone;
  bool copied_ = false;  // the batch, not worked off in place
  gpu::CudaStream copies_;
  gpu::CudaMemory input_copy_;     // device
  gpu::CudaMemory reply_copy_;     // device
  gpu::CudaMemory combine_table_;  // device: uint64_t
  gpu::CudaMemory reply_end_;      // pinned: uint32_t
  gpu::CudaMemory again_slots_;    // pinned: PacketSlot, of those that are run again
  gpu::CudaMemory again_;          // pinned: PacketResult of these
  std::vector<uint32_t> origin_;   // of these: the packet of the batch
  uint32_t reply_used_ = 0;        // bytes
  uint32_t combine_round_ = 0;
  bool out_of_memory_ = false;
  // Goes first: giving memory back waits for kernels that run.
  JobRunner<PacketJob> runner_;
};

}  // namespace warpcache::engine::cuda
