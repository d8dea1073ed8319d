// SPDX-License-Identifier: Apache-2.0
//
// The engine that runs everywhere. A batch is worked off in groups of kGroupSize requests: all are
// decoded while their index sets are on the way into the cache, all are located while their items
// are, and then each is executed and answered in its turn. Only the last step has effects, and it
// looks for itself, so the commands of a connection take effect in order whatever else the batch
// holds.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "engine/admin_window.h"
#include "engine/cpu/reply_writer.h"
#include "engine/engine.h"
#include "engine/replies.h"
#include "request/stages.h"
#include "store/host/store.h"

namespace warpcache::engine {

// Requests whose memory accesses overlap. Enough to cover a miss to memory with work on the others,
// few enough that their states (128 bytes each) stay in the first-level cache.
inline constexpr uint32_t kGroupSize = 32;

// Values up to this are copied into the reply: a piece of its own would cost more than the copy.
inline constexpr uint32_t kCopiedValueMax = 4 * 1024;

// Longer values are sent from where they lie, pinned. Up to this they are copied into the reply
// arena where much is pinned already.
inline constexpr uint32_t kInlineValueMax = 16 * 1024;

// Longer values, up to this (a default item), are copied to heap memory where no pin is to be had;
// beyond it they wait for a pin. The copy counts as output of the stream that does not read it.
inline constexpr uint32_t kHeapValueMax = 1024 * 1024;

// Bytes of such copies after which a batch takes no further one. It may pass this by one value, and
// where base64 keys keep a group from waiting, by a group of them.
inline constexpr uint32_t kBatchHeapBytesMax = kHeapValueMax;

// Reply space that a group may take, checked before it starts, so that nothing takes effect that
// cannot be answered.
inline constexpr uint32_t kGroupReplyMax = kGroupSize * (kInlineValueMax + kReplyFrameMax);

inline constexpr uint32_t kReplyArenaBytes = 2 * 1024 * 1024;
static_assert(kReplyArenaBytes >= 2 * kGroupReplyMax);

struct CpuEngineConfig {
  uint32_t item_size_max = 1 << 20;  // -I, bytes, as memcached counts them
  bool cas_enabled = true;           // not -C
  // How long values above kHeapValueMax may wait for others to be sent. After that they are
  // missed.
  uint32_t pin_wait_ms_max = 100;
};

class CpuEngine final : public Engine {
 public:
  // `store` and `admin` outlive the engine. One instance per thread; registers that thread with the
  // store.
  CpuEngine(const CpuEngineConfig& config, store::Store& store, AdminHandler& admin);
  ~CpuEngine() override;

  uint8_t* input_memory(uint32_t bytes) override;
  void submit(Batch* batch) override;
  Batch* poll() override;
  void release(uint32_t pin) override;
  Status reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) override;
  MutableBytes reservation_window(uint32_t id, uint32_t offset) override;
  void abandon(uint32_t id) override;

  // What this thread's requests have counted; any thread may read.
  const request::Counters& counters() const { return counters_; }
  request::Counters& counters() { return counters_; }

 private:
  struct Slot {
    request::RequestState state;
    uint32_t entry;
  };

  void run_groups(Batch& batch);
  uint32_t fill_group(Batch& batch, uint32_t& next_frame);
  void run_one(Batch& batch, uint32_t index, uint32_t count);
  void run_on_store(BatchEntry& entry, uint32_t index, uint32_t count);
  void refuse_for_memory(const protocol::Request& request);
  void write(Bytes bytes);
  bool may_run_admin(const BatchEntry& entry, const protocol::Request& request);
  void run_admin(Batch& batch, BatchEntry& entry, uint32_t index, uint32_t count);
  void execute(request::RequestState& state, uint32_t index, uint32_t count,
               protocol::Result& result);
  void answer(BatchEntry& entry, const request::RequestState& state, protocol::Result& result);
  void answer_copied(const request::RequestState& state, const protocol::Result& result);
  void answer_pinned(BatchEntry& entry, const request::RequestState& state,
                     protocol::Result& result);
  void answer_unpinned(BatchEntry& entry, const request::RequestState& state,
                       protocol::Result& result);
  void answer_from_heap(BatchEntry& entry, const request::RequestState& state,
                        const protocol::Result& result);
  bool has_space() const;
  void open_entry(Batch& batch, uint32_t entry);
  void close_entry(Batch& batch);
  void fail_datagram(Batch& batch, BatchEntry& entry, Bytes error);
  bool must_wait(const BatchEntry& entry, uint32_t index, uint32_t count);
  bool waited_too_long();
  void drop_hints(uint32_t from, uint32_t count);

  store::Store& store_;
  AdminHandler& admin_;
  store::ThreadContext thread_;
  request::Context context_;
  request::Counters counters_;
  ReplyWriter writer_;
  std::unique_ptr<uint8_t[]> input_;
  Batch* done_ = nullptr;
  Slot group_[kGroupSize];
  uint32_t open_entry_;             // index of the entry whose replies are being written
  uint8_t* entry_start_ = nullptr;  // where in the arena they begin
  uint32_t entry_reply_bytes_ = 0;
  uint32_t entry_admin_ = 0;  // administrative commands of the open entry that were run
  uint32_t batch_admin_ = 0;  // and of the batch
  AdminWindow admin_window_;
  uint32_t heap_bytes_ = 0;  // of the batch: values copied for want of pins
  bool wants_keys_ = false;
  bool stopped_ = false;  // the open entry waits for another batch
  uint32_t pin_wait_ms_max_;
  bool pins_refused_ = false;  // since `refused_since_`
  std::chrono::steady_clock::time_point refused_since_;
};

}  // namespace warpcache::engine
