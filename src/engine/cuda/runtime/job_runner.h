// SPDX-License-Identifier: Apache-2.0
//
// Hands jobs of one kind to the GPU, one at a time, in one of two ways: a kernel for each, or one
// kernel that stays and takes them by a doorbell in mapped memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "engine/cuda/runtime/kernels.h"
#include "gpu/device.h"
#include "store/cuda/cuda_store.h"

namespace warpcache::engine::cuda {

struct JobRunnerConfig {
  uint32_t blocks_max = 1;  // CudaStoreConfig::blocks_per_engine
  bool persistent = false;  // one kernel that stays, instead of one a job
  // Of the kernels, against those of others that share the device.
  gpu::CudaStream::Priority priority = gpu::CudaStream::Priority::kNormal;
  // A job that takes longer means that the device is lost.
  uint32_t job_ms_max = 10000;
};

template <typename JobKind>
class JobRunner {
 public:
  // `store` and `faults` outlive it.
  JobRunner(const JobRunnerConfig& config, store::CudaStore& store, gpu::DeviceFaults& faults)
      : config_(config), store_(store), faults_(faults) {}
  ~JobRunner();
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  // Returns what is wrong, or "". The first launch takes a while: it is made here, with a job of
  // nothing, not at the first client's cost.
  std::string start();

  // The next job, to be filled by the caller; empty but for what is the runner's: result, readers,
  // words of the device. REQUIRES: none is under way.
  JobKind& next();
  // Hands it in. What it points to stays until ended() or wait() has said so.
  void launch();
  // Whether it is over; with DeviceFaults::failed() its results mean nothing.
  bool ended();
  // Waits for the end. False: the device has failed.
  bool wait();

  // Of a job that is over.
  const JobResult& result() const { return *result_.as<JobResult>(); }
  // Likewise: adds what it has counted, and tells the store's owner what it has seen. Once.
  void take_counts(request::Counters& counters);

  // What is put there is done before the next job begins. REQUIRES: not persistent.
  cudaStream_t stream() const { return stream_.get(); }

  // Ends the kernel that stays, so that others have the GPU's blocks to themselves; the next job
  // starts it again. REQUIRES: no job is under way.
  void release_device();

  // The store, to call what its own kernels do. The kernel that stays ends first: where a checker
  // or a debugger lets one kernel run at a time, the caller would wait for ever. REQUIRES: as
  // release_device().
  store::CudaStore& store_alone() {
    release_device();
    return store_;
  }

 private:
  bool takes_too_long() const;
  // What the driver says, where the job does not: whether it is over, for good or bad.
  bool look_at_kernel();
  // Whether the blocks of all engines' kernels that stay, taken to be of this kind, find room
  // beside each other. One that does not would be waited for in vain.
  bool fits() const;
  // Never 0.
  uint32_t next_number() {
    if (++number_ == 0) ++number_;
    return number_;
  }
  Doorbell<JobKind>& bell() const { return *bell_.as<Doorbell<JobKind>>(); }

  JobRunnerConfig config_;
  store::CudaStore& store_;
  gpu::DeviceFaults& faults_;
  BlockResources resources_;
  uint32_t first_reader_ = 0;
  gpu::CudaStream stream_;
  gpu::CudaMemory result_;       // pinned: JobResult
  gpu::CudaMemory words_;        // device: JobWords
  gpu::CudaMemory bell_;         // pinned: Doorbell
  gpu::CudaMemory device_bell_;  // device: DeviceDoorbell
  JobKind job_ = {};
  bool kernel_runs_ = false;  // the one that stays
  uint32_t number_ = 0;
  uint32_t polls_ = 0;  // since the job was handed in
  std::chrono::steady_clock::time_point began_;
};

}  // namespace warpcache::engine::cuda
