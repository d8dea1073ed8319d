// SPDX-License-Identifier: Apache-2.0
//
// Runs a batch of messages on the GPU. A batch becomes one or more jobs (job.h). The first contains
// all frames; frames that were not done (no space in the store or for the reply, or after a command
// that the host runs) are submitted again in the next one, until every entry is answered as far as
// possible. The device writes replies directly into the pinned memory that the spans point to. When
// the device fails during a batch, the reservations of the batch stay the caller's
// (failover_engine.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/changed_keys.h"
#include "engine/cuda/engine_parts.h"
#include "engine/cuda/request_peek.h"
#include "engine/cuda/runtime/job_runner.h"

namespace warpcache::engine::cuda {

// Used by one thread.
class MessageRunner {
 public:
  // Values up to this size go through the reply arena; longer ones have separate buffers.
  static constexpr uint32_t kArenaValueMax = 1024 * 1024;
  // Buffers for values that are being sent to clients.
  static constexpr uint32_t kLargeBuffers = 4;

  // Returns the error as text, or "". `parts` outlive the runner, which is the one with `number` of
  // its engine.
  static std::string create(EngineParts& parts, uint32_t number,
                            std::unique_ptr<MessageRunner>* runner);

  // Device memory of one runner.
  static uint64_t device_bytes(const CudaEngineConfig& config);

  // REQUIRES: the runner has no batch. What the batch's spans point to stays until the next
  // begin().
  void begin(Batch* batch);
  // The batch when its replies are ready, else null.
  Batch* poll();
  bool is_idle() const { return batch_ == nullptr; }

  // Gives back a pin of a span. False: it is another runner's.
  bool release(uint32_t pin);
  void release_device() { runner_.release_device(); }

 private:
  // The answer to a frame of the batch, or its state.
  struct Answer {
    const uint8_t* data = nullptr;
    uint32_t size = 0;
    uint32_t pin = 0;
    FrameState state = FrameState::kNotReached;
    uint32_t bytes = 0;
    bool answered = false;
    bool denied = false;    // its user may not; answered when the frames before it are
    bool reported = false;  // frame_reports_ has more of it
    bool shown = false;     // it was reported to whoever wants it
  };
  enum class EntryNext : uint8_t { kFinished, kAgain };

  MessageRunner(EngineParts& parts, uint32_t number);
  std::string start();

  void begin_batch(Batch& batch);
  void ask_watchers();
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
  void mark_denied(const BatchEntry& entry);
  void deny(uint32_t index, uint32_t frame);
  EntryNext fetch_large(BatchEntry& entry, uint32_t frame);
  void fetch_apart(uint32_t frame);
  void run_alone(uint32_t frame, const gpu::CudaMemory& reply);
  void answer_miss(uint32_t frame);
  void answer_with(uint32_t frame, Bytes reply);
  template <typename... Text>
  void answer_text(uint32_t frame, Text&&... text);
  template <typename Run>
  void run_admin(BatchEntry& entry, const protocol::Request& request, uint32_t frame, Run run);
  protocol::Request parse(uint32_t frame);
  bool waited_too_long();
  void finish_bodies();
  void finish();
  void show_requests(const BatchEntry& entry);
  void show(const BatchEntry& entry, const protocol::Request& request, Bytes key, uint32_t frame);

  EngineParts& parts_;
  const CudaEngineConfig& config_;
  gpu::DeviceFaults& faults_;
  AdminHandler& admin_;
  ChangedKeys changes_;
  uint32_t first_pin_;  // of those for this runner's large buffers

  gpu::CudaMemory frames_;         // pinned: protocol::Frame
  gpu::CudaMemory entries_;        // pinned: EntryInfo
  gpu::CudaMemory reply_arena_;    // pinned
  gpu::CudaMemory reply_copy_;     // device
  gpu::CudaMemory groups_;         // pinned: Group
  gpu::CudaMemory frame_replies_;  // pinned: FrameReply, by frame of the job, and FrameReport
  gpu::CudaMemory large_[kLargeBuffers];  // pinned
  gpu::CudaMemory large_copy_;            // device
  gpu::CudaMemory apart_;                 // pinned: one reply of any size, to be copied to a text
  bool large_used_[kLargeBuffers] = {};
  // Declared last: its destructor ends the kernels, and freeing memory waits for running kernels.
  JobRunner<FrameJob> runner_;

  Batch* batch_ = nullptr;
  FrameJob* job_ = nullptr;  // of the current round
  bool under_way_ = false;
  std::vector<Answer> answers_;             // by frame of the batch
  std::vector<uint32_t> entry_bytes_;       // reply bytes so far
  std::vector<uint32_t> entry_admin_;       // administrative commands so far
  std::vector<uint32_t> origin_;            // by frame of the job: the frame of the batch
  std::vector<uint32_t> bodies_;            // by entry: the store's reservation, 0 if none
  std::vector<FrameReport> frame_reports_;  // by frame of the batch; empty: there was no watcher
  RequestPeek peek_;                        // for --access and watchers
  std::vector<uint32_t> again_;             // entries of the next round
  std::vector<uint32_t> round_;             // entries of the last one
  std::deque<std::string> texts_;           // replies that the host made
  uint32_t arena_used_ = 0;
  uint64_t space_wanted_ = 0;   // of the largest deferred request; 0: none
  uint64_t space_missing_ = 0;  // of all deferred requests
  uint32_t defers_ = 0;         // successive rounds in which a request was deferred
  bool out_of_memory_ = false;
  bool wants_keys_ = false;
  bool reports_ = false;       // somebody watches requests
  bool pins_refused_ = false;  // since `refused_since_`
  std::chrono::steady_clock::time_point refused_since_;
};

}  // namespace warpcache::engine::cuda
