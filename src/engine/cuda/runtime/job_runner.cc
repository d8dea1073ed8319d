// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/job_runner.h"

#include "base/atomic.h"
#include "gpu/host_polls.h"

namespace warpcache::engine::cuda {

namespace {

using SteadyClock = std::chrono::steady_clock;

}  // namespace

template <typename JobKind>
JobRunner<JobKind>::~JobRunner() {
  if (stream_.get() == nullptr || faults_.failed()) return;
  release_device();
  if (!faults_.failed()) (void)cudaStreamSynchronize(stream_.get());
}

template <typename JobKind>
std::string JobRunner<JobKind>::start() {
  const auto device = gpu::CudaMemory::Place::kDevice;
  const auto host = gpu::CudaMemory::Place::kHost;
  if (!result_.allocate(host, sizeof(JobResult)) ||
      !bell_.allocate(host, sizeof(Doorbell<JobKind>)) ||
      !device_bell_.allocate(device, sizeof(DeviceDoorbell<JobKind>)) ||
      !words_.allocate(device, sizeof(JobWords))) {
    return "there is too little memory for the GPU's jobs";
  }
  if (!stream_.create(config_.priority)) return "the GPU gives no stream";
  const cudaError_t prepared = prepare_kernels(static_cast<const JobKind*>(nullptr));
  if (!faults_.check(prepared, "loading the kernels")) return faults_.why();
  if (config_.persistent && !fits()) {
    return "the GPU has no space for the persistent kernels of all engines: fewer engines, "
           "or fewer blocks each";
  }
  resources_ = store_.resources();
  first_reader_ = store_.take_readers();
  if (config_.edge != nullptr) {
    const std::string failure = start_edge();
    if (!failure.empty()) return failure;
  }
  (void)next();
  launch();
  if (wait()) release_device();
  return faults_.failed() ? faults_.why() : "";
}

template <typename JobKind>
std::string JobRunner<JobKind>::start_edge() {
  if (!device_resources_.allocate(gpu::CudaMemory::Place::kDevice, sizeof(BlockResources))) {
    return "there is too little memory for the GPU's jobs";
  }
  const cudaError_t error =
      cudaMemcpyAsync(device_resources_.data(), &resources_, sizeof(resources_),
                      cudaMemcpyHostToDevice, stream_.get());
  if (!faults_.check(error, "starting the engine") ||
      !faults_.check(cudaStreamSynchronize(stream_.get()), "starting the engine")) {
    return faults_.why();
  }
  return config_.edge->add(edge_function(static_cast<const JobKind*>(nullptr)),
                           sizeof(EdgeJob<JobKind>), &event_);
}

template <typename JobKind>
bool JobRunner<JobKind>::fits() const {
  const uint32_t kernels = config_.resident != 0 ? config_.resident : store_.engines();
  const uint64_t wanted = uint64_t{kernels} * config_.blocks_max;
  return wanted <= persistent_blocks_at_once(static_cast<const JobKind*>(nullptr));
}

template <typename JobKind>
JobKind& JobRunner<JobKind>::next() {
  job_ = {};
  job_.result = result_.as<JobResult>();
  job_.done = &bell().done;
  job_.words = words_.as<JobWords>();
  job_.first_reader = first_reader_;
  return job_;
}

template <typename JobKind>
void JobRunner<JobKind>::take_counts(request::Counters& counters) {
  for (uint32_t i = 0; i < kCounterCount; ++i) {
    const uint32_t count = result().counts[i];
    if (count != 0) add_owned(&counters.value[i], count);
  }
  store_.saw_free_segments(result().free_segments, result().low_water);
}

template <typename JobKind>
void JobRunner<JobKind>::launch() {
  const uint32_t last = number_;
  job_.number = next_number();
  began_ = SteadyClock::now();
  polls_ = 0;
  if (config_.edge != nullptr) return launch_event();
  if (!config_.persistent) {
    const gpu::LaunchShape shape = shape_for(&job_, job_.shares, config_.blocks_max);
    launch_job(resources_, job_, shape, stream_.get());
    (void)faults_.check(cudaGetLastError(), "starting a batch");
    return;
  }
  if (!kernel_runs_) {
    const gpu::LaunchShape all = persistent_shape(&job_, config_.blocks_max);
    ringer_.start(bell(), last);
    launch_persistent(resources_, &bell(), device_bell_.as<DeviceDoorbell<JobKind>>(), last, all,
                      stream_.get());
    kernel_runs_ = faults_.check(cudaGetLastError(), "starting the persistent kernel");
  }
  ringer_.ring(bell(), job_, number_);
}

template <typename JobKind>
bool JobRunner<JobKind>::enter_edge() {
  if (!kernel_runs_) kernel_runs_ = config_.edge->enter();
  return kernel_runs_;
}

template <typename JobKind>
void JobRunner<JobKind>::launch_event() {
  const EdgeJob<JobKind> parameters = event_parameters();
  if (!enter_edge() ||
      !config_.edge->schedule(event_, &parameters, sizeof(parameters), event_blocks())) {
    faults_.fail("starting a batch", config_.edge->why().c_str());
  }
}

template <typename JobKind>
bool JobRunner<JobKind>::prepare(net::PeerDoorbell* doorbell) {
  if (config_.edge == nullptr || !config_.edge->has_file()) return false;
  job_.number = next_number();
  const EdgeJob<JobKind> parameters = event_parameters();
  if (!enter_edge() ||
      !config_.edge->prepare(event_, &parameters, sizeof(parameters), event_blocks(), &doorbell_)) {
    faults_.fail("preparing a batch", config_.edge->why().c_str());
    return false;
  }
  *doorbell = {doorbell_.word, doorbell_.value, config_.edge->offset_of(doorbell_)};
  return true;
}

template <typename JobKind>
bool JobRunner<JobKind>::waits_for_peer() {
  if (doorbell_.word == nullptr) return false;
  if (doorbell_.is_rung()) {
    doorbell_ = {};
    began_ = SteadyClock::now();
    polls_ = 0;
    return false;
  }
  const store::Clock now = store_.clock();
  if (now.now == job_.clock.now && now.unix_start == job_.clock.unix_start) return true;
  job_.clock = now;
  const EdgeJob<JobKind> parameters = event_parameters();
  const auto* const clock = reinterpret_cast<const uint32_t*>(&parameters.job.clock);
  const auto first = clock - reinterpret_cast<const uint32_t*>(&parameters);
  for (uint32_t i = 0; i < sizeof(store::Clock) / sizeof(uint32_t); ++i) {
    edge_queues::change(doorbell_, static_cast<uint32_t>(first) + i, clock[i]);
  }
  return true;
}

template <typename JobKind>
void JobRunner<JobKind>::release_device() {
  if (!kernel_runs_ || faults_.failed()) return;
  if (config_.edge != nullptr) {
    kernel_runs_ = false;
    if (!config_.edge->leave()) faults_.fail("ending the scheduler", config_.edge->why().c_str());
    return;
  }
  ringer_.end(bell(), next_number());
  began_ = SteadyClock::now();
  cudaError_t state = cudaErrorNotReady;
  while (state == cudaErrorNotReady && !takes_too_long()) state = cudaStreamQuery(stream_.get());
  if (!faults_.check(state, "ending the persistent kernel")) return;
  kernel_runs_ = false;
}

template <typename JobKind>
bool JobRunner<JobKind>::takes_too_long() const {
  const uint32_t ms_max = config_.job_ms_max == 0 ? gpu::kJobMsMax : config_.job_ms_max;
  return SteadyClock::now() - began_ > std::chrono::milliseconds(ms_max);
}

template <typename JobKind>
bool JobRunner<JobKind>::ended() {
  store_.answer_evictions();
  const bool waits = waits_for_peer();
  if (!waits && load_acquire(&bell().done) == number_) return true;
  gpu::between_polls(++polls_);
  if (polls_ % gpu::kPollsPerLook != 0) return false;
  return waits ? !config_.edge->check() : look_at_kernel();
}

template <typename JobKind>
bool JobRunner<JobKind>::look_at_kernel() {
  if (config_.edge != nullptr) {
    if (!config_.edge->check()) faults_.fail("running a batch", config_.edge->why().c_str());
    if (takes_too_long()) faults_.fail("a batch does not end");
    return faults_.failed();
  }
  const cudaError_t state = cudaStreamQuery(stream_.get());
  if (state == cudaErrorNotReady) {
    if (takes_too_long()) faults_.fail("a batch does not end");
  } else if (state != cudaSuccess) {
    (void)faults_.check(state, "running a batch");
  } else if (load_acquire(&bell().done) != number_) {
    faults_.fail("a kernel has ended without its batch");
  } else {
    return true;
  }
  return faults_.failed();
}

template <typename JobKind>
bool JobRunner<JobKind>::wait() {
  while (!ended()) {
  }
  return !faults_.failed();
}

template class JobRunner<FrameJob>;
template class JobRunner<PacketJob>;

}  // namespace warpcache::engine::cuda
