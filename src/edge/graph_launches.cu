// SPDX-License-Identifier: Apache-2.0
//
// The scheduler as a graph that launches graphs. A graph may launch 120 others before it ends, so
// the scheduler launches itself as its own successor before that; CUDA starts the successor when
// the launched ones have ended. Its state is in device memory.
#include <vector>

#include "edge/device/scheduler.cuh"
#include "edge/graph_launches.h"
#include "gpu/device.h"
#include "gpu/start_kernel.cuh"

namespace warpcache::edge {

namespace {

constexpr uint32_t kLaunchesMax = 100;  // of one run of the scheduler
constexpr uint32_t kSchedulerThreads = kThreadsMax;

// In device memory.
struct GraphState {
  SchedulerShared scheduler;
  uint64_t began_ns;
};

class GraphDispatch {
 public:
  __device__ GraphDispatch(const View& view, const cudaGraphExec_t* graphs, uint32_t* launched,
                           uint32_t* lock)
      : view_(view), graphs_(graphs), launched_(launched), lock_(lock) {}

  __device__ void open() {
    if (lane() == 0) {
      while (atomicExch(lock_, 1u) != 0) __nanosleep(20);
    }
    __syncwarp();
  }
  __device__ void close() {
    __syncwarp();
    if (lane() == 0) atomicExch(lock_, 0u);
  }
  __device__ void manage() {}

  template <uint32_t kLoads>
  __device__ bool start(const Facts& facts, uint32_t event, uint32_t number, uint32_t blocks,
                        const uint64_t (&words)[kLoads]) {
    const uint32_t launched = atomicAdd(launched_, 0u);
    if (__any_sync(~0u, launched >= kLaunchesMax) != 0) return false;
    const uint32_t entry = (number - 1) & (facts.depth - 1);
    Context& context = view_.contexts[event * view_.contexts_each + entry];
#pragma unroll
    for (uint32_t i = 0; i < kLoads; ++i) {
      const uint32_t at = i * kWarp + lane();
      if (at != 0 && at <= facts.words) context.parameters[at - 1] = half_of(words[i]);
    }
    if (lane() == 0) {
      context.number = number;
      context.blocks = blocks;
    }
    __threadfence();
    __syncwarp();
    uint32_t started = 0;
    if (lane() == 0) {
      // It fails while the last run of this graph is still ending, after its completion word.
      const cudaError_t error = cudaGraphLaunch(graphs_[event * view_.contexts_each + entry],
                                                cudaStreamGraphFireAndForget);
      started = error == cudaSuccess ? 1 : 0;
      if (started != 0) atomicAdd(launched_, 1u);
      if (started == 0) add_to(&view_.state->counts.busy_launches, 1);
    }
    return __shfl_sync(~0u, started, 0) != 0;
  }

 private:
  const View& view_;
  const cudaGraphExec_t* graphs_;
  uint32_t* launched_;
  uint32_t* lock_;
};

__global__ void __launch_bounds__(kThreadsMax)
    edge_graph_scheduler(const __grid_constant__ View view, GraphState* state,
                         const cudaGraphExec_t* graphs) {
  __shared__ uint32_t launched;
  __shared__ uint32_t lock;
  if (threadIdx.x == 0) {
    launched = lock = 0;
    if (state->began_ns == 0) state->began_ns = gpu::global_time_ns();
  }
  __syncthreads();
  GraphDispatch dispatch(view, graphs, &launched, &lock);
  Scheduler<GraphDispatch> scheduler(view, state->scheduler, dispatch);
  const uint32_t* const count = &launched;
  scheduler.run(state->began_ns, [count] {
    const bool full = *static_cast<const volatile uint32_t*>(count) >= kLaunchesMax;
    return __any_sync(~0u, full) != 0;
  });
  __syncthreads();
  if (threadIdx.x != 0) return;
  const bool stops = state->scheduler.stop != 0;
  __threadfence();
  if (stops ||
      cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch) != cudaSuccess) {
    store_release_system(&view.header().state, static_cast<uint32_t>(stops ? RegionState::kStopped
                                                                           : RegionState::kFailed));
  }
}

class DeviceGraphs final : public GraphLaunches {
 public:
  DeviceGraphs(const edge_program& program, const View& view, cudaStream_t stream)
      : program_(program), view_(view), stream_(stream) {}
  ~DeviceGraphs() override {
    for (uint32_t event = 0; event < kEventsMax; ++event) remove_event(event);
    if (scheduler_ != nullptr) (void)cudaGraphExecDestroy(scheduler_);
  }

  std::string open() {
    const auto device = gpu::CudaMemory::Place::kDevice;
    if (!state_.allocate(device, sizeof(GraphState)) ||
        !table_.allocate(device,
                         uint64_t{kEventsMax} * view_.contexts_each * sizeof(cudaGraphExec_t))) {
      return "there is too little memory for graphs";
    }
    if (!normal_.create(gpu::CudaStream::Priority::kNormal) ||
        !urgent_.create(gpu::CudaStream::Priority::kHigh)) {
      return "the GPU gives no stream";
    }
    const auto start = [this](cudaStream_t stream) {
      gpu::start_kernel(edge_graph_scheduler, {1, kSchedulerThreads}, 0, stream, view_,
                        state_.as<GraphState>(),
                        static_cast<const cudaGraphExec_t*>(table_.as<cudaGraphExec_t>()));
      return cudaGetLastError();
    };
    return make(urgent_.get(), start, &scheduler_);
  }

  std::string add_event(uint32_t event, const EventEntry& entry) override {
    remove_event(event);
    std::vector<cudaGraphExec_t>& graphs = graphs_[event];
    graphs.assign(entry.depth, nullptr);
    const gpu::LaunchShape shape = {entry.blocks, entry.threads};
    const cudaStream_t stream =
        entry.priority == EDGE_PRIORITY_NORMAL ? normal_.get() : urgent_.get();
    for (uint32_t i = 0; i < entry.depth; ++i) {
      const auto start = [&](cudaStream_t on) {
        const bool known =
            program_.start_event(entry.function, view_, event, i, shape, entry.shared_bytes, on);
        return known ? cudaGetLastError() : cudaErrorInvalidValue;
      };
      const std::string failure = make(stream, start, &graphs[i]);
      if (!failure.empty()) return failure;
    }
    const cudaError_t error =
        cudaMemcpy(table_.as<cudaGraphExec_t>() + event * view_.contexts_each, graphs.data(),
                   graphs.size() * sizeof(cudaGraphExec_t), cudaMemcpyHostToDevice);
    return error == cudaSuccess ? "" : cudaGetErrorString(error);
  }

  std::string start() override {
    cudaError_t error = cudaMemsetAsync(state_.data(), 0, sizeof(GraphState), stream_);
    if (error == cudaSuccess) error = cudaGraphLaunch(scheduler_, stream_);
    return error == cudaSuccess ? "" : cudaGetErrorString(error);
  }

 private:
  void remove_event(uint32_t event) {
    for (const cudaGraphExec_t graph : graphs_[event]) {
      if (graph != nullptr) (void)cudaGraphExecDestroy(graph);
    }
    graphs_[event].clear();
  }

  // A graph that the device can launch, of what `start` puts into a stream.
  template <typename Start>
  static std::string make(cudaStream_t stream, const Start& start, cudaGraphExec_t* made) {
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (error == cudaSuccess) {
      const cudaError_t started = start(stream);
      error = cudaStreamEndCapture(stream, &graph);
      if (started != cudaSuccess) error = started;
    }
    if (error == cudaSuccess) {
      error = cudaGraphInstantiate(made, graph, cudaGraphInstantiateFlagDeviceLaunch);
    }
    if (error == cudaSuccess) error = cudaGraphUpload(*made, stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    if (error == cudaSuccess) return "";
    (void)cudaGetLastError();
    return std::string("making a graph for the device: ") + cudaGetErrorString(error);
  }

  const edge_program& program_;
  const View view_;
  const cudaStream_t stream_;
  gpu::CudaMemory state_;
  gpu::CudaMemory table_;  // of each event: a graph for each entry
  gpu::CudaStream normal_;
  gpu::CudaStream urgent_;
  cudaGraphExec_t scheduler_ = nullptr;
  std::vector<cudaGraphExec_t> graphs_[kEventsMax];
};

}  // namespace

std::string GraphLaunches::create(const edge_program& program, const View& view,
                                  cudaStream_t stream, std::unique_ptr<GraphLaunches>* launches) {
  auto made = std::make_unique<DeviceGraphs>(program, view, stream);
  std::string failure = made->open();
  if (failure.empty()) *launches = std::move(made);
  return failure;
}

}  // namespace warpcache::edge
