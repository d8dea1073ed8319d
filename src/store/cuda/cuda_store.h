// SPDX-License-Identifier: Apache-2.0
//
// The owner of a store in the memory of a GPU. The host holds no part of the index and, if the GPU
// is large enough, none of the values; a kernel does what the host wants done or known. A thread of
// the host decides when maintenance runs; the steps themselves run on the device, at the same time
// as requests.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gpu/device.h"
#include "store/cuda/block_resources.h"
#include "store/cuda/copy_guard.h"
#include "store/cuda/eviction_watch.h"
#include "store/cuda/service_kernels.h"
#include "store/host/owner.h"
#include "store/host/tables.h"

namespace warpcache::store {

struct CudaStoreConfig {
  StoreConfig store;                 // threads and readers_max are computed
  bool values_on_host = false;       // the device holds the index and few values
  uint32_t engines = 1;              // of CudaEngines: one for each batch or burst under way
  uint32_t blocks_per_engine = 1;    // thread blocks of one job at most
  uint64_t block_scratch_bytes = 0;  // work memory of each of those blocks
  uint64_t engine_bytes = 0;         // device memory that each engine will take
};

class CudaStore final : public StoreOwner {
 public:
  // Returns the error as text, or "". `faults` outlives the store.
  static std::string create(const CudaStoreConfig& config, gpu::DeviceFaults& faults,
                            std::unique_ptr<CudaStore>* store);
  ~CudaStore() override;  // REQUIRES: no job is in progress

  // Bytes of the arena that are in host memory, because the device has no space for them or was not
  // meant to hold them. Kernels read and write them over the bus.
  uint64_t host_bytes() const { return far_arena_.bytes(); }

  // What jobs need of the store.
  BlockResources resources() const;
  // The first reader of the next engine, which owns blocks_per_engine readers.
  uint32_t take_readers();
  uint32_t engines() const { return config_.engines; }

  // See Store::maintain().
  void maintain();
  // After kDeferred, see Store::reclaim(). Reclaims for an item of `bytes`, and if that is not too
  // much, for all `missing` bytes that the deferred requests want together.
  Status reclaim(uint64_t bytes, uint64_t missing);
  // Called with the numbers that a job has read: wakes maintenance if it is needed.
  void saw_free_segments(uint32_t free_segments, uint32_t low_water) {
    if (free_segments < low_water) wake();
  }

  // --- Copies of items outside of the store (StoreConfig::copies). Without them nothing of this is
  // called, except copies().

  CopyGuard& copies() { return copies_; }
  // Calls visit(item) if the key has an item, with its header, key and, up to kReadValueMax bytes,
  // value; nobody changes it before `visit` has returned. kDeferred: a batch under way may change
  // it; try again later. From any thread.
  Status visit_item(Bytes key, const std::function<void(const Item&)>& visit);
  // The keys were read elsewhere, from copies. Drops copies of what is not there.
  void note_read(const std::vector<std::vector<uint8_t>>& keys);
  // Answers a kernel that evicts an item with a copy. Whoever waits for a kernel calls it, again
  // and again: the kernel waits for the answer.
  void answer_evictions() {
    if (copies_.on()) answer_mail();
  }
  // The device has failed: no copy can be read any more, and none is made.
  void stop_copies();

  // --- Reservations. The caller writes the value. reserve() also gives the parts of its place, in
  // device memory or in pinned memory of the host: the rest of a segment, whole segments, and the
  // start of one. `parts` is pinned memory for reserved_parts_max() of the largest size. kDeferred:
  // others hold all that may be reserved.
  Status reserve(uint8_t key_size, uint32_t value_size, MutableBytes* parts, uint32_t* id);
  void abandon(uint32_t id);  // nothing happens if it is used up
  uint32_t reserved_parts_max(uint32_t value_size) const {
    return static_cast<uint32_t>(chain_segments(core_, item_bytes(UINT8_MAX, value_size)));
  }
  uint32_t segment_size() const { return core_.segment_size(); }
  // Whether all parts of a value of this size are in the host's memory.
  bool is_on_host(const MutableBytes* parts, uint32_t value_size) const;

  bool set_memory_limit(uint64_t bytes) override;
  StoreStats stats() const override;
  Status walk(uint64_t& cursor, const std::function<void(const WalkedItem&)>& visit) override;
  bool inspect(Bytes key, Item* header) override;
  void watch_evictions() override;
  Clock clock() const override;

 private:
  CudaStore(const CudaStoreConfig& config, gpu::DeviceFaults& faults);
  std::string start();
  std::string take_memory(const Geometry& geometry);
  std::string take_arena(const Geometry& geometry);
  void start_thread();
  void run();
  void wake();
  void apply_clock(uint32_t now) override;
  void apply_flush() override;
  Status apply_prefix_flush(Bytes prefix, uint32_t due) override;
  void apply_expiry() override;

  // Runs one operation on the device, one at a time; `result` gets a copy. False: the device has
  // failed.
  bool call(ServiceOp op, uint64_t argument, ServiceCall* result = nullptr, Bytes key = {},
            MutableBytes* parts = nullptr);
  bool call_locked(ServiceOp op, uint64_t argument, Bytes key, MutableBytes* parts);
  void flush_copies_before(ServiceOp op, uint64_t argument);
  bool wait(const char* what);
  void answer_mail();
  bool is_stopping();

  CudaStoreConfig config_;
  gpu::DeviceFaults& faults_;
  mutable CopyGuard copies_;
  gpu::CudaMemory mail_;    // pinned: EvictedMail; empty: there are no copies
  uint32_t mail_lock_ = 0;  // held by the thread that answers
  EvictionWatch evictions_;
  Tables tables_;
  Core core_;
  gpu::CudaMemory arena_;
  gpu::CudaMemory far_arena_;  // pinned
  gpu::CudaMemory device_tables_;
  uint32_t evacuators_ = 0;     // of maintenance
  uint32_t launch_number_ = 0;  // number of the last launch of the service kernel, guarded by
                                // service_mutex_
  gpu::CudaMemory maintainer_;
  gpu::CudaMemory scratch_;
  uint32_t readers_taken_ = 1;  // reader 0 is maintenance's

  // Separate, so that statistics do not wait for maintenance.
  mutable std::mutex stats_mutex_;  // guards what follows
  gpu::CudaStream stats_stream_;
  gpu::CudaMemory stats_copy_;  // pinned: a copy of the tables' first bytes

  std::mutex walk_mutex_;  // guards what follows
  gpu::CudaMemory walk_call_;
  gpu::CudaMemory walk_buffer_;

  mutable std::mutex service_mutex_;  // guards what follows
  gpu::CudaStream stream_;
  gpu::CudaMemory call_;
  gpu::CudaMemory noted_;        // pinned: NotedKeys; empty: there are no copies
  uint32_t next_flush_due_ = 0;  // the next second at which a prefix is flushed; 0: none

  std::mutex wake_mutex_;
  std::condition_variable wake_condition_;
  std::atomic<bool> awake_{false};
  bool stopping_ = false;  // guarded by wake_mutex_
  std::thread thread_;
};

}  // namespace warpcache::store
