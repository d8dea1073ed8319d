// SPDX-License-Identifier: Apache-2.0
//
// The engine that runs everywhere. It works on a batch in groups of kGroupSize requests: it decodes
// all of a group while their index sets are fetched into the cache, locates all while their items
// are fetched, and then executes and answers one after the other. Only the last step has effects,
// and it repeats the look-up, so the commands of a connection take effect in order, whatever else
// is in the batch.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/admin_budget.h"
#include "engine/cpu/prepared_stores.h"
#include "engine/cpu/reply_writer.h"
#include "engine/cpu/single_key_packets.h"
#include "engine/engine.h"
#include "engine/host_packets.h"
#include "engine/replies.h"
#include "request/stages.h"
#include "request/watched.h"
#include "store/host/store.h"

namespace warpcache::engine {

// Requests whose memory accesses overlap. It is enough to cover a cache miss with work on the
// others, and their states (128 bytes each) still fit into the first-level cache.
inline constexpr uint32_t kGroupSize = 32;

// Values up to this size are copied into the reply: a separate piece would cost more than the copy.
inline constexpr uint32_t kCopiedValueMax = 4 * 1024;

// Longer values are pinned and sent from the store. Values up to this size are copied into the
// reply arena when much is pinned already.
inline constexpr uint32_t kInlineValueMax = 16 * 1024;

// Longer values up to this size (the largest item by default) are copied to heap memory when no pin
// is available; still longer ones wait for a pin. The copy counts as unsent output of the stream
// that does not read it.
inline constexpr uint32_t kHeapValueMax = 1024 * 1024;

// Bytes of such copies after which a batch makes no further one. It may be exceeded by one value,
// and by a group of values where base64 keys prevent a group from waiting.
inline constexpr uint32_t kBatchHeapBytesMax = kHeapValueMax;

// Bytes of stored values that the requests of a batch write anew (append, incr and the like) before
// streams' further such requests wait for the next one. A datagram, which cannot wait, is then
// answered with an error. It may be exceeded by one value.
inline constexpr uint32_t kBatchCopiedMax = 4 * 1024 * 1024;

// Reply space that a group may need. It is checked before the group starts, so that nothing takes
// effect that cannot be answered.
inline constexpr uint32_t kGroupReplyMax = kGroupSize * (kInlineValueMax + kReplyFrameMax);

inline constexpr uint32_t kReplyArenaBytes = 2 * 1024 * 1024;
static_assert(kReplyArenaBytes >= 2 * kGroupReplyMax);

struct CpuEngineConfig {
  uint32_t item_size_max = 1 << 20;  // -I, bytes, as memcached counts them
  bool cas_enabled = true;           // not -C
  // How long values above kHeapValueMax may wait for a pin. After that the answer is a miss.
  uint32_t pin_wait_ms_max = 100;
  AdminBudget::Clock::duration admin_window = AdminBudget::kWindow;
};

class CpuEngine final : public Engine {
 public:
  // `store` and `admin` outlive the engine. One instance for each thread; the constructor registers
  // that thread with the store.
  CpuEngine(const CpuEngineConfig& config, store::Store& store, AdminHandler& admin);
  ~CpuEngine() override;

  uint8_t* input_memory(uint32_t bytes) override;
  void submit(Batch* batch) override;
  Batch* poll() override;
  void release(uint32_t pin) override;
  Status reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) override;
  MutableBytes reservation_window(uint32_t id, uint32_t received, uint32_t after) override;
  void abandon(uint32_t id) override;
  std::string open_packets(const PacketSettings& settings) override;
  // Packets run on the caller's thread, so a second burst would wait for the first.
  uint32_t packet_bursts() const override { return 1; }
  uint32_t packets_per_burst() const override { return 64; }
  uint8_t* packet_memory(uint64_t bytes) override;
  std::string use_packet_memory(MutableBytes /*memory*/) override { return ""; }
  void submit_packets(net::PacketBurst* burst) override;
  net::PacketBurst* poll_packets() override;

  // Counts of this thread's requests; any thread may read them.
  const request::Counters& counters() const { return counters_; }
  request::Counters& counters() { return counters_; }

 private:
  struct Slot {
    request::RequestState state;
    uint32_t entry;
    request::PlainKind kind;
  };

  void run_groups(Batch& batch);
  uint32_t fill_group(Batch& batch, uint32_t& next_frame);
  template <bool kCopiesMuch>
  uint32_t decode_group(const Batch& batch, uint32_t& next_frame, uint32_t end);
  void run_group(Batch& batch, uint32_t count);
  bool runs_plainly(const BatchEntry& entry) const;
  uint32_t answer_plain(uint32_t index, uint32_t count);
  uint8_t* answer_plain_one(const Slot& slot, uint32_t index, uint8_t* out);
  void run_one(Batch& batch, uint32_t index, uint32_t count);
  void run_on_store(BatchEntry& entry, uint32_t index, uint32_t count);
  uint8_t* run_prepared_set(const request::RequestState& state, store::Item* item, uint8_t* out);
  request::KeyBefore look_before(const request::RequestState& state) const;
  void show_request(const BatchEntry& entry, const request::RequestState& state,
                    const protocol::Result& result, const request::KeyBefore& before);
  void deny(const BatchEntry& entry, const protocol::Request& request);
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
  bool exceeds_share(const BatchEntry& entry, const store::Item& item) const;
  bool waits_for_share(const BatchEntry& entry, uint32_t index, uint32_t count) const;
  bool may_wait(uint32_t index, uint32_t count) const;
  void answer_over_share(BatchEntry& entry, const request::RequestState& state,
                         protocol::Result& result);
  bool waited_too_long();
  // Whether a request writes anew what is stored already.
  static bool copies_stored(protocol::Op op) {
    using protocol::Op;
    return op == Op::kAppend || op == Op::kPrepend || op == Op::kIncr || op == Op::kDecr;
  }
  static uint32_t bytes_copied(const request::RequestState& state, const protocol::Result& result);
  void count_copied(const BatchEntry& entry, uint32_t bytes);
  bool may_copy_by_base64(const Batch& batch, const protocol::Frame& frame) const;
  bool stops_before_copy(const protocol::Frame& frame) const;
  uint32_t end_before_copy(Batch& batch, uint32_t& next_frame);
  bool may_not_copy(const BatchEntry& entry) const;
  bool waits_to_copy(const BatchEntry& entry, uint32_t index, uint32_t count) const;
  void drop_hints(uint32_t from, uint32_t count);

  store::Store& store_;
  AdminHandler& admin_;
  store::ThreadContext thread_;
  request::Context context_;
  request::Counters counters_;
  ReplyWriter writer_;
  std::unique_ptr<uint8_t[]> input_;
  Batch* done_ = nullptr;
  std::optional<HostPackets> packets_;
  std::optional<SingleKeyPackets> single_key_;
  std::vector<std::unique_ptr<uint8_t[]>> packet_memory_;
  net::PacketBurst* packets_done_ = nullptr;
  Slot group_[kGroupSize];
  PreparedStores sets_;              // of the group
  uint32_t open_entry_;              // index of the entry whose replies are being written
  uint8_t* entry_start_ = nullptr;   // where in the arena they begin
  uint32_t entry_reply_bytes_ = 0;   // and bytes that its requests have copied in the store
  uint64_t entry_value_memory_ = 0;  // that the pins of the open entry's replies hold, in bytes
  uint32_t entry_admin_ = 0;         // administrative commands of the open entry that have run
  AdminBudget admin_budget_;
  uint32_t heap_bytes_ = 0;              // of the batch: values copied for want of pins
  uint64_t copied_bytes_ = 0;            // by the batch's streams: see kBatchCopiedMax
  uint64_t datagrams_copied_bytes_ = 0;  // likewise, by its datagrams
  uint64_t copied_before_bytes_ = 0;     // by streams in earlier batches; older ones weigh less
  bool wants_keys_ = false;
  bool wants_keys_of_burst_ = false;  // asked once for a burst of packets
  bool stopped_ = false;              // the open entry continues in another batch
  uint32_t pin_wait_ms_max_;
  std::shared_ptr<const Rights> rights_;  // of the open entry's user; null: all
  bool pins_refused_ = false;             // since `refused_since_`
  std::chrono::steady_clock::time_point refused_since_;
};

}  // namespace warpcache::engine
