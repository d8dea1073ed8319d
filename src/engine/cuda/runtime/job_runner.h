// SPDX-License-Identifier: Apache-2.0
//
// Runs jobs of one kind on the GPU, one at a time: with one launch for each job, with a persistent
// kernel that gets jobs through a doorbell, or as events of EDGE.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "engine/cuda/edge/edge_jobs.h"
#include "engine/cuda/runtime/kernels.h"
#include "gpu/device.h"
#include "store/cuda/cuda_store.h"

namespace warpcache::engine::cuda {

struct JobRunnerConfig {
  uint32_t blocks_max = 1;  // CudaStoreConfig::blocks_per_engine
  bool persistent = false;  // a persistent kernel instead of a launch for each job
  // Persistent kernels that may be resident at the same time. 0: one for each of the store's
  // engines.
  uint32_t resident = 0;
  // Of the kernels, relative to others on the device.
  gpu::CudaStream::Priority priority = gpu::CudaStream::Priority::kNormal;
  // If a job takes longer, the device counts as failed. 0: kJobMsMax of gpu/host_polls.h.
  uint32_t job_ms_max = 0;
  // Jobs are events of these; it outlives the runner. `persistent` is false then.
  EdgeJobs* edge = nullptr;

  // The kernel is there before the job.
  bool stays() const { return persistent || edge != nullptr; }
};

template <typename JobKind>
class JobRunner {
 public:
  // `store` and `faults` outlive the runner.
  JobRunner(const JobRunnerConfig& config, store::CudaStore& store, gpu::DeviceFaults& faults)
      : config_(config), store_(store), faults_(faults) {}
  ~JobRunner();
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  // Returns the error as text, or "". Runs an empty job: the first launch takes a while, and no
  // client shall wait for it.
  std::string start();

  // The next job, to be filled by the caller. The runner has set its own fields: result, readers,
  // words of the device. REQUIRES: no job is in progress.
  JobKind& next();
  // Starts the job. What it points to stays until ended() or wait() has returned true, or the
  // device has failed.
  void launch();
  // The same, but the job starts when somebody rings `doorbell`. The clock of the job is kept right
  // by ended() until then. False: nobody can; nothing was started. Only with EDGE.
  bool prepare(net::PeerDoorbell* doorbell);
  // The job has ended. With DeviceFaults::failed() its results mean nothing.
  bool ended();
  // Waits for the end. False: the device has failed.
  bool wait();

  // Of a job that has ended.
  const JobResult& result() const { return *result_.as<JobResult>(); }
  // Likewise; to be called once. Adds the job's counts, and reports its free segments to the
  // store's owner.
  void take_counts(request::Counters& counters);

  // Work on this stream is done before the next job begins. REQUIRES: !JobRunnerConfig::stays().
  cudaStream_t stream() const { return stream_.get(); }

  // Ends the persistent kernel, so that others have the GPU's blocks; the next job starts it again.
  // EDGE's scheduler ends with its last runner. REQUIRES: no job is in progress.
  void release_device();

  // The store, for calls that launch its own kernels. The persistent kernel ends first: a checker
  // or a debugger may run one kernel at a time, and the call would never return. REQUIRES: as
  // release_device().
  store::CudaStore& store_alone() {
    release_device();
    return store_;
  }

 private:
  std::string start_edge();
  void launch_event();
  bool enter_edge();
  EdgeJob<JobKind> event_parameters() const {
    return {device_resources_.template as<BlockResources>(), job_};
  }
  uint32_t event_blocks() const { return shape_for(&job_, job_.shares, config_.blocks_max).blocks; }
  // Of a job that was prepared: it has not been rung for.
  bool waits_for_peer();
  bool takes_too_long() const;
  // Asks the driver about the kernel, when the job itself does not end. True: the kernel has ended
  // or failed.
  bool look_at_kernel();
  // The blocks of all engines' persistent kernels of this kind fit on the device at the same time.
  // A job would wait forever for a block that does not fit.
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
  BellRinger<JobKind> ringer_;
  JobKind job_ = {};
  bool kernel_runs_ = false;          // the persistent one, or EDGE's
  gpu::CudaMemory device_resources_;  // device: BlockResources, for events
  uint32_t event_ = 0;
  edge_queues::Doorbell doorbell_;  // of a job that was prepared; otherwise empty
  uint32_t number_ = 0;
  uint32_t polls_ = 0;  // since the job was started
  std::chrono::steady_clock::time_point began_;
};

}  // namespace warpcache::engine::cuda
