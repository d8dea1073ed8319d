// SPDX-License-Identifier: Apache-2.0
//
// The host's side of EDGE: it makes the queues, starts and ends the scheduler, and learns of
// failures. See warpcache/edge.h for what the functions do.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "edge/graph_launches.h"
#include "edge/partition.h"
#include "edge/program.h"
#include "edge/queues.h"
#include "gpu/device.h"

struct edge_runtime {
 public:
  explicit edge_runtime(const edge_config& config);
  ~edge_runtime();
  edge_runtime(const edge_runtime&) = delete;
  edge_runtime& operator=(const edge_runtime&) = delete;

  // Selects the device for the process, and opens.
  edge_status open_device();
  // REQUIRES: the calling thread uses the device, see gpu::open_device().
  edge_status open();
  edge_status close();
  edge_status register_event(const edge_event& event, uint32_t* id);
  edge_status unregister_event(uint32_t id);
  edge_status modify_event(uint32_t id, uint32_t blocks);
  edge_status pause();
  edge_status resume();
  edge_status release_barrier(uint32_t barrier);
  edge_status check();
  edge_status read_counts(edge_counts* counts);

  edge_queues& queues() { return queues_; }
  cudaStream_t rest_stream() const { return partition_ == nullptr ? nullptr : partition_->rest(); }
  const std::string& why() const { return why_; }
  // For a scheduler that was paused when it is not known whether it runs.
  bool runs() const { return runs_; }

 private:
  using Clock = std::chrono::steady_clock;

  edge_status fail(edge_status status, const std::string& why) {
    why_ = why;
    return status;
  }
  edge_status allocate();
  edge_status start();
  edge_status stop();
  edge_status check_locked();
  void recover();
  cudaStream_t stream() const { return partition_ == nullptr ? stream_.get() : partition_->own(); }
  void change_table();
  edge_status check_event(const edge_event& event) const;
  uint64_t area_bytes() const;
  bool wait_until_seen(uint32_t id);
  bool device_queue_idle(uint32_t id, bool* idle);
  edge_status prepare_device_queue(uint32_t id);
  bool copy_from_device(void* to, const void* from, size_t bytes);
  Clock::time_point deadline() const {
    return Clock::now() + std::chrono::milliseconds(config_.wait_ms_max);
  }

  edge_config config_;
  std::string path_;
  std::mutex mutex_;
  std::string why_;
  edge_queues queues_;
  warpcache::gpu::PinnedMemory pinned_;
  warpcache::gpu::CudaMemory state_;
  warpcache::gpu::CudaMemory contexts_;
  warpcache::gpu::CudaMemory device_queues_;
  warpcache::gpu::CudaMemory copies_;  // pinned: for copy_from_device()
  warpcache::gpu::CudaStream stream_;  // of the scheduler, unless it has multiprocessors of its own
  std::unique_ptr<warpcache::edge::Partition> partition_;
  warpcache::gpu::CudaStream side_;
  warpcache::edge::View view_ = {};
  std::unique_ptr<warpcache::edge::GraphLaunches> graphs_;
  uint32_t generation_ = 0;
  bool runs_ = false;
  bool failed_ = false;
};
