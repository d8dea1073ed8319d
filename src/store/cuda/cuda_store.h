// SPDX-License-Identifier: Apache-2.0
//
// The owner of a store in the memory of a GPU. The host holds no part of it: what it wants done or
// known of the store, a kernel does. A thread of the host decides when maintenance runs; the steps
// themselves run on the device, beside the requests.
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
#include "store/cuda/service_kernels.h"
#include "store/host/owner.h"
#include "store/host/tables.h"

namespace warpcache::store {

struct CudaStoreConfig {
  StoreConfig store;                 // threads and readers_max follow
  bool values_on_host = false;       // the device holds the index and little else
  uint32_t engines = 1;              // CudaEngines that will use it
  uint32_t blocks_per_engine = 1;    // thread blocks that a job may run on
  uint64_t block_scratch_bytes = 0;  // memory that each of those blocks works in
  uint64_t engine_bytes = 0;         // of the device, that each of them will take
};

class CudaStore final : public StoreOwner {
 public:
  // Returns what is wrong, or "". `faults` outlives the store.
  static std::string create(const CudaStoreConfig& config, gpu::DeviceFaults& faults,
                            std::unique_ptr<CudaStore>* store);
  ~CudaStore() override;  // REQUIRES: no job is under way

  // Of its memory what is the host's, in bytes: what the device has no room for, or was not meant
  // to hold. Read and written over the bus.
  uint64_t host_bytes() const { return far_arena_.bytes(); }

  // What jobs run on.
  BlockResources resources() const;
  // The first reader of the next engine: blocks_per_engine of them are its own.
  uint32_t take_readers();
  uint32_t engines() const { return config_.engines; }

  // See Store::maintain().
  void maintain();
  // After kDeferred, see Store::reclaim(): for an item of `bytes`, and if that is not too
  // much for `missing` bytes, which all that were deferred want together.
  Status reclaim(uint64_t bytes, uint64_t missing);
  // What a job has seen: maintenance may be wanted.
  void saw_free_segments(uint32_t free_segments, uint32_t low_water) {
    if (free_segments < low_water) wake();
  }

  // --- Reservations. A body comes from pinned memory of the caller's.
  Status reserve(uint8_t key_size, uint32_t value_size, uint32_t* id);
  bool fill(uint32_t id, uint32_t offset, const uint8_t* pinned, uint32_t size);
  void abandon(uint32_t id);

  bool set_memory_limit(uint64_t bytes) override;
  StoreStats stats() const override;
  Status walk(uint64_t& cursor, const std::function<void(const WalkedItem&)>& visit) override;
  bool inspect(Bytes key, Item* header) override;
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
  void apply_expiry() override;

  // One call at a time; the result is in the returned copy. False: the device has failed.
  bool call(ServiceOp op, uint64_t argument, ServiceCall* result = nullptr, Bytes key = {});
  bool wait(const char* what) const;
  bool is_stopping();

  CudaStoreConfig config_;
  gpu::DeviceFaults& faults_;
  Tables tables_;
  Core core_;
  gpu::CudaMemory arena_;
  gpu::CudaMemory far_arena_;  // pinned
  gpu::CudaMemory device_tables_;
  uint32_t evacuators_ = 0;     // of maintenance
  uint32_t launch_number_ = 0;  // calls of it, guarded by service_mutex_
  gpu::CudaMemory maintainer_;
  gpu::CudaMemory scratch_;
  uint32_t readers_taken_ = 1;  // the first is maintenance's

  // Of its own, so that who asks for statistics does not wait for the store's work.
  mutable std::mutex stats_mutex_;  // guards what follows
  gpu::CudaStream stats_stream_;
  gpu::CudaMemory stats_copy_;  // pinned: of the tables' first bytes

  std::mutex walk_mutex_;  // guards what follows
  gpu::CudaMemory walk_call_;
  gpu::CudaMemory walk_buffer_;

  mutable std::mutex service_mutex_;  // guards what follows
  gpu::CudaStream stream_;
  gpu::CudaMemory call_;

  std::mutex wake_mutex_;
  std::condition_variable wake_condition_;
  std::atomic<bool> awake_{false};
  bool stopping_ = false;  // guarded by wake_mutex_
  std::thread thread_;
};

}  // namespace warpcache::store
