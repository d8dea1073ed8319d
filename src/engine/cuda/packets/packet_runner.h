// SPDX-License-Identifier: Apache-2.0
//
// Whole Ethernet frames on the GPU, after MemcachedGPU and GNoM (SoCC 2015): the device reads
// headers, runs requests and writes reply frames with their checksums. The host handles only
// unusual packets: administrative commands, several commands in a datagram other than the keys of a
// text multiget (get_lines.cuh), frames of more than 3 KB, values that are chains of segments, and
// replies that do not fit into an empty arena: see CudaEngine, which owns one of these for each
// burst that is under way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/changed_keys.h"
#include "engine/cuda/runtime/job_runner.h"
#include "request/counters.h"

namespace warpcache::engine::cuda {

struct PacketRunnerConfig {
  uint16_t udp_port = 11211;
  uint8_t protocol = 0;              // -B: see PacketSettings
  uint32_t item_size_max = 1 << 20;  // -I, bytes
  bool cas_enabled = true;           // not -C
  JobRunnerConfig jobs;
  // Batches of at least this number of packets cross the bus by copy engines; smaller ones by loads
  // and stores of the kernel. 0: no batch is copied. docs/decisions/0009-packet-kernel.md explains
  // the choice.
  uint32_t copied_packets_min = 0;
  // Input bytes of a copied batch at most; larger batches are read in place.
  uint32_t copied_input_bytes = 16 * 1024 * 1024;
  uint32_t copied_reply_bytes = 16 * 1024 * 1024;
};

// Used by one thread at a time.
class PacketRunner {
 public:
  // Packets of one batch.
  static constexpr uint32_t kPacketsMax = cuda::kPacketsMax;

  // Returns the error as text, or "". `store`, `faults` and `counters`, to which the requests are
  // added, outlive the runner.
  static std::string create(const PacketRunnerConfig& config, store::CudaStore& store,
                            gpu::DeviceFaults& faults, request::Counters& counters,
                            std::unique_ptr<PacketRunner>* runner);

  // Runs a burst, and waits for its end; packets without space in the store or for the reply run
  // again. Afterwards each packet is kDone, kDropped or kHost. Packets that are kHost must run
  // before any reply of the batch is sent: another set may have been answered as if one of these
  // had overwritten its value. False: the device has failed, and nothing may be sent. REQUIRES: at
  // most kPacketsMax packets; the engine has no batch.
  bool run(const net::PacketBurst& batch);

  // The same in steps, so that one thread can keep several engines busy: the driver lets one launch
  // at a time through, and several threads would wait for each other. What `batch` points to stays
  // until finish() has returned.
  void begin(const net::PacketBurst& batch);
  // The same for a burst that a peer rings for. False: nobody can; nothing was begun.
  bool begin_for_peer(const net::PacketBurst& batch, net::PeerDoorbell* doorbell);
  // The GPU has finished the batch: finish() waits only for packets that must run again.
  bool ended();
  bool finish();

  // Whether packets of the burst are kHost. Called after finish(), as reply_used().
  bool has_host_packets() const { return has_host_packets_; }
  // Bytes of the reply arena that the burst has used.
  uint32_t reply_used() const { return reply_used_; }

  // See Engine::release_device().
  void release_device() { runner_.release_device(); }

 private:
  PacketRunner(const PacketRunnerConfig& config, store::CudaStore& store, gpu::DeviceFaults& faults,
               request::Counters& counters)
      : config_(config),
        store_(store),
        faults_(faults),
        counters_(counters),
        changes_(store.copies(), kPacketsMax),
        runner_(config.jobs, store, faults) {}
  std::string start();
  protocol::FrameLimits limits() const;
  void take(const net::PacketBurst& batch);
  PacketJob& prepare_job(const net::PacketBurst& batch);
  static void bring_with_job(const net::PacketBurst& batch, PacketJob& job);
  uint32_t next_combine_round();
  bool is_copied(const net::PacketBurst& batch) const;
  void begin_in_place(const net::PacketBurst& batch);
  void begin_copied();
  void begin_copying_back();
  cudaStream_t copies() const;
  bool copies_ended();
  bool finish_copies();
  bool finish_rounds();
  bool run_again();
  void collect();
  uint32_t hand_back();

  // The stage of the current batch.
  enum class Stage : uint8_t { kNone, kKernel, kCopyingBack, kEnded };

  PacketRunnerConfig config_;
  store::CudaStore& store_;
  gpu::DeviceFaults& faults_;
  request::Counters& counters_;
  ChangedKeys changes_;
  net::PacketBurst batch_;  // the latest
  Stage stage_ = Stage::kNone;
  bool copied_ = false;            // the batch crosses the bus by copy engines
  gpu::CudaStream copies_;         // of persistent kernels and EDGE
  gpu::CudaMemory input_copy_;     // device
  gpu::CudaMemory reply_copy_;     // device
  gpu::CudaMemory combine_table_;  // device: uint64_t
  gpu::CudaMemory reply_end_;      // pinned: uint32_t
  gpu::CudaMemory again_slots_;    // pinned: PacketSlot, of packets that run again
  gpu::CudaMemory again_;          // pinned: PacketResult of these
  std::vector<uint32_t> origin_;   // of these: the number in the batch
  uint32_t reply_used_ = 0;        // bytes
  bool has_host_packets_ = false;
  uint32_t combine_round_ = 0;
  bool out_of_memory_ = false;
  // Declared last: its destructor ends the kernels, and freeing memory waits for running kernels.
  JobRunner<PacketJob> runner_;
};

}  // namespace warpcache::engine::cuda
