// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/job_runner.h"

#include <algorithm>

#include "base/atomic.h"

namespace warpcache::engine::cuda {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr uint32_t kPollsPerLook = 4096;  // asking the driver takes longer than looking

}  // namespace

JobRunner::~JobRunner() {
  if (stream_.get() == nullptr || faults_.failed()) return;
  yield();
  (void)cudaStreamSynchronize(stream_.get());
}

std::string JobRunner::start() {
  const auto device = CudaMemory::Place::kDevice;
  const auto host = CudaMemory::Place::kHost;
  if (!job_.allocate(host, sizeof(Job)) || !groups_.allocate(host, sizeof(Group) * kGroupsMax) ||
      !replies_.allocate(host, sizeof(FrameReply) * kFramesMax) ||
      !results_.allocate(host, sizeof(GroupResult) * kGroupsMax) ||
      !bell_.allocate(host, sizeof(Doorbell)) || !turn_.allocate(device, sizeof(Turn)) ||
      !words_.allocate(device, 256)) {
    return "there is too little memory for the GPU's jobs";
  }
  if (!stream_.create(CudaStream::Priority::kNormal)) return "the GPU gives no stream";
  if (!faults_.check(prepare_kernels(), "loading the kernels")) return faults_.why();
  resources_ = store_.resources();
  first_reader_ = store_.take_readers();
  (void)next();
  launch();
  if (wait()) yield();
  return faults_.failed() ? faults_.why() : "";
}

Job& JobRunner::next() {
  Job& job = *job_.as<Job>();
  job = {};
  job.reply_used = words_.as<uint64_t>();
  job.blocks_done = words_.as<uint32_t>() + 16;
  job.first_reader = first_reader_;
  job.groups = groups_.as<Group>();
  job.replies = replies_.as<FrameReply>();
  job.results = results_.as<GroupResult>();
  return job;
}

void JobRunner::add_group(uint32_t first, uint32_t count) {
  groups_.as<Group>()[job_.as<Job>()->group_count++] = {first, count};
}

void JobRunner::take_counts(request::Counters& counters) {
  const uint32_t groups = job_.as<Job>()->group_count;
  const auto* results = results_.as<GroupResult>();
  for (uint32_t g = 0; g < groups; ++g) {
    for (uint32_t i = 0; i < kCounterCount; ++i) {
      if (results[g].counts[i] != 0) add_owned(&counters.value[i], results[g].counts[i]);
    }
  }
  if (groups != 0) {
    store_.saw_free_segments(results[groups - 1].free_segments, results[groups - 1].low_water);
  }
}

void JobRunner::launch() {
  const Job* job = job_.as<Job>();
  began_ = SteadyClock::now();
  polls_ = 0;
  if (!config_.persistent) {
    const uint32_t blocks = std::clamp(job->group_count, 1u, config_.blocks_max);
    launch_job(resources_, job, blocks, stream_.get());
    (void)faults_.check(cudaGetLastError(), "starting a batch");
    return;
  }
  Doorbell& bell = *bell_.as<Doorbell>();
  if (!kernel_runs_) {
    bell.stop = 0;
    launch_persistent(resources_, job, &bell, turn_.as<Turn>(), number_, config_.blocks_max,
                      stream_.get());
    kernel_runs_ = faults_.check(cudaGetLastError(), "starting the kernel that stays");
  }
  store_release(&bell.job, ++number_);
}

void JobRunner::yield() {
  if (!kernel_runs_) return;
  Doorbell& bell = *bell_.as<Doorbell>();
  store_release(&bell.stop, 1);
  store_release(&bell.job, ++number_);
  (void)faults_.check(cudaStreamSynchronize(stream_.get()), "ending the kernel that stays");
  kernel_runs_ = false;
}

bool JobRunner::ended() {
  if (!config_.persistent) return kernel_ended();
  const uint32_t* done = &bell_.as<Doorbell>()->done;
  if (load_acquire(done) == number_) return true;
  if (++polls_ % kPollsPerLook != 0 || !kernel_ended()) return false;
  if (load_acquire(done) != number_) faults_.fail("the kernel that stays has ended");
  return true;
}

// True: it has ended, or there is a fault.
bool JobRunner::kernel_ended() {
  const cudaError_t state = cudaStreamQuery(stream_.get());
  if (state == cudaSuccess) return true;
  if (state != cudaErrorNotReady) {
    (void)faults_.check(state, "running a batch");
    return true;
  }
  if (SteadyClock::now() - began_ > std::chrono::milliseconds(config_.job_ms_max)) {
    faults_.fail("a batch does not end");
    return true;
  }
  return false;
}

bool JobRunner::wait() {
  while (!ended()) {
  }
  return !faults_.failed();
}

}  // namespace warpcache::engine::cuda
