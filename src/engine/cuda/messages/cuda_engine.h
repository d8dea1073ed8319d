// SPDX-License-Identifier: Apache-2.0
//
// The engine that runs requests on a GPU. A batch becomes one or more jobs (job.h). The first
// contains all frames; frames that were not done (no space in the store or for the reply, or after
// a command that the host runs) are submitted again in the next one, until every entry is answered
// as far as possible. The device writes replies directly into the pinned memory that the spans
// point to. When the device fails during a batch, the reservations of the batch stay the caller's,
// to be stored elsewhere (failover_engine.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/admin_budget.h"
#include "engine/cuda/messages/incoming_bodies.h"
#include "engine/cuda/packets/packet_runner.h"
#include "engine/cuda/runtime/job_runner.h"
#include "engine/engine.h"
#include "engine/host_packets.h"
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
  uint32_t packet_bursts = 2;  // of Ethernet frames, under way at a time
  // Packet bursts of at least this number cross the bus by copy engines: see PacketRunnerConfig.
  uint32_t copied_packets_min = 0;
};

class CudaEngine final : public Engine {
 public:
  // Values up to this size go through the reply arena; longer ones have separate buffers.
  static constexpr uint32_t kArenaValueMax = 1024 * 1024;
  // Buffers for values that are being sent to clients.
  static constexpr uint32_t kLargeBuffers = 4;

  // Returns the error as text, or "". `store`, `faults` and `admin` outlive the engine.
  static std::string create(const CudaEngineConfig& config, store::CudaStore& store,
                            gpu::DeviceFaults& faults, AdminHandler& admin,
                            std::unique_ptr<CudaEngine>* engine);

  // Device memory of one engine, rounded up as the driver does. `input_bytes`: of input_memory().
  static uint64_t device_bytes(const CudaEngineConfig& config, uint32_t input_bytes);

  uint8_t* input_memory(uint32_t bytes) override;
  void attach_thread() override;
  void submit(Batch* batch) override;
  Batch* poll() override;
  void release(uint32_t pin) override;
  Status reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) override;
  MutableBytes reservation_window(uint32_t id, uint32_t offset) override;
  void abandon(uint32_t id) override;
  void release_device() override;
  std::string open_packets(const PacketSettings& settings) override;
  uint32_t packet_bursts() const override { return config_.packet_bursts; }
  uint8_t* packet_memory(uint64_t bytes) override;
  void submit_packets(net::PacketBurst* burst) override;
  net::PacketBurst* poll_packets() override;

  const request::Counters& counters() const { return counters_; }
  request::Counters& counters() { return counters_; }

 private:
  // The answer to a frame of the batch, or its state.
  struct Answer {
    const uint8_t* data = nullptr;
    uint32_t size = 0;
    uint32_t pin = 0;
    FrameState state = FrameState::kNotReached;
    uint32_t bytes = 0;
    bool answered = false;
  };
  enum class EntryNext : uint8_t { kFinished, kAgain };

  CudaEngine(const CudaEngineConfig& config, store::CudaStore& store, gpu::DeviceFaults& faults,
             AdminHandler& admin);
  std::string start();

  void begin(Batch& batch);
  void begin_round();
  void add_entry(uint32_t entry);
  void add_group(uint32_t first, uint32_t count);
  FrameJob& prepare_job(uint8_t* reply_out, uint8_t* reply_copy, uint32_t reply_size);
  uint32_t take_results(const uint8_t* reply_out);
  void after_round();
  EntryNext next_of(uint32_t entry);
  EntryNext next_of_first(uint32_t entry, uint32_t frame, bool has_hole);
  bool run_on_host(uint32_t entry, uint32_t frame, bool must);
  void fail_datagram(const BatchEntry& entry, Bytes error);
  void authenticate(BatchEntry& entry);
  EntryNext fetch_large(BatchEntry& entry, uint32_t frame);
  void fetch_apart(uint32_t frame);
  void run_alone(uint32_t frame, const gpu::CudaMemory& reply);
  void answer_miss(uint32_t frame);
  void answer_with(uint32_t frame, Bytes reply);
  template <typename... Text>
  void answer_text(uint32_t frame, Text&&... text);
  template <typename Run>
  void run_admin(const protocol::Request& request, uint32_t frame, Run run);
  protocol::Request parse(uint32_t frame);
  bool waited_too_long();
  void place_bodies();
  void finish();
  void show_keys(const BatchEntry& entry);

  CudaEngineConfig config_;
  store::CudaStore& store_;
  gpu::DeviceFaults& faults_;
  AdminHandler& admin_;
  request::Counters counters_;
  IncomingBodies incoming_;

  gpu::CudaMemory input_;                 // pinned: memory of Batch::input
  gpu::CudaMemory input_copy_;            // device
  gpu::CudaMemory frames_;                // pinned: protocol::Frame
  gpu::CudaMemory entries_;               // pinned: EntryInfo
  gpu::CudaMemory reply_arena_;           // pinned
  gpu::CudaMemory reply_copy_;            // device
  gpu::CudaMemory groups_;                // pinned: Group
  gpu::CudaMemory frame_replies_;         // pinned: FrameReply, by frame of the job
  gpu::CudaMemory bounce_;                // pinned: bodies that are copied to the store
  gpu::CudaMemory large_[kLargeBuffers];  // pinned
  gpu::CudaMemory large_copy_;            // device
  gpu::CudaMemory apart_;                 // pinned: one reply of any size, to be copied to a text
  bool large_used_[kLargeBuffers] = {};
  // Declared last: its destructor ends the kernels, and freeing memory waits for running kernels.
  JobRunner<FrameJob> runner_;

  // Ethernet frames: bursts under way, each with its runner.
  struct PacketsRunning {
    net::PacketBurst* burst;
    PacketRunner* runner;
  };
  void finish_packets(const PacketsRunning& running);

  std::deque<gpu::CudaMemory> packet_memory_;  // pinned
  std::vector<std::unique_ptr<PacketRunner>> packet_runners_;
  std::vector<PacketRunner*> idle_runners_;
  std::vector<PacketsRunning> packets_running_;
  std::optional<HostPackets> host_packets_;
  std::vector<uint32_t> for_host_;  // packets of a burst

  Batch* batch_ = nullptr;
  FrameJob* job_ = nullptr;  // of the current round
  bool under_way_ = false;
  std::vector<Answer> answers_;        // by frame of the batch
  std::vector<uint32_t> entry_bytes_;  // reply bytes so far
  std::vector<uint32_t> entry_admin_;  // administrative commands so far
  AdminBudget admin_budget_;
  std::vector<uint32_t> origin_;   // by frame of the job: the frame of the batch
  std::vector<uint32_t> bodies_;   // by entry: the device's reservation, 0 if none
  std::vector<uint32_t> again_;    // entries of the next round
  std::vector<uint32_t> round_;    // entries of the last one
  std::deque<std::string> texts_;  // replies that the host made
  uint32_t arena_used_ = 0;
  uint64_t space_wanted_ = 0;   // of the largest deferred request; 0: none
  uint64_t space_missing_ = 0;  // of all deferred requests
  uint32_t defers_ = 0;         // successive rounds in which a request was deferred
  bool out_of_memory_ = false;
  bool wants_keys_ = false;
  bool pins_refused_ = false;  // since `refused_since_`
  std::chrono::steady_clock::time_point refused_since_;
};

}  // namespace warpcache::engine::cuda
