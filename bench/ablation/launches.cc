// SPDX-License-Identifier: Apache-2.0
#include "ablation/launches.h"

#include <algorithm>
#include <chrono>

namespace warpcache::ablation {

namespace {

uint64_t input_bytes(const GetBatch& batch) { return uint64_t{batch.count} * batch.slot_bytes; }

// Calls on a stream, one after the other.
class ByStream {
 public:
  ByStream(const Variant<GetBatch>& variant, const uint8_t* frames, cudaStream_t stream)
      : variant_(variant), frames_(frames), stream_(stream) {}

  void start(const GetBatch& batch) const {
    if (frames_ != nullptr) {
      check(cudaMemcpyAsync(const_cast<uint8_t*>(batch.input), frames_, input_bytes(batch),
                            cudaMemcpyHostToDevice, stream_),
            "frames to the GPU");
    }
    variant_.launch(batch, stream_);
  }

 private:
  const Variant<GetBatch>& variant_;
  const uint8_t* frames_;
  cudaStream_t stream_;
};

// The same calls, recorded once. The parameters of a batch are set before each launch.
class ByGraph {
 public:
  ByGraph(const ByStream& calls, const GetBatch& shape, const uint8_t* frames, cudaStream_t stream)
      : frames_(frames), stream_(stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a graph");
    calls.start(shape);
    check(cudaStreamEndCapture(stream, &graph_), "recording a graph");
    size_t count = 2;
    cudaGraphNode_t nodes[2];
    check(cudaGraphGetNodes(graph_, nodes, &count), "a graph's nodes");
    for (size_t i = 0; i < count; ++i) {
      cudaGraphNodeType type;
      check(cudaGraphNodeGetType(nodes[i], &type), "a graph's nodes");
      (type == cudaGraphNodeTypeKernel ? kernel_ : copy_) = nodes[i];
    }
    check(cudaGraphKernelNodeGetParams(kernel_, &parameters_), "a graph's kernel");
    check(cudaGraphInstantiate(&launchable_, graph_, 0), "a graph");
  }
  ~ByGraph() {
    (void)cudaGraphExecDestroy(launchable_);
    (void)cudaGraphDestroy(graph_);
  }
  ByGraph(const ByGraph&) = delete;
  ByGraph& operator=(const ByGraph&) = delete;

  void start(const GetBatch& batch) {
    if (frames_ != nullptr) {
      check(
          cudaGraphExecMemcpyNodeSetParams1D(launchable_, copy_, const_cast<uint8_t*>(batch.input),
                                             frames_, input_bytes(batch), cudaMemcpyHostToDevice),
          "a graph's copy");
    }
    GetBatch own = batch;
    parameters_.kernelParams[kBatchParameter] = &own;
    check(cudaGraphExecKernelNodeSetParams(launchable_, kernel_, &parameters_), "a graph's kernel");
    check(cudaGraphLaunch(launchable_, stream_), "a graph");
  }

 private:
  static constexpr uint32_t kBatchParameter = 1;  // of the kernels: the one after the store

  const uint8_t* frames_;
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t launchable_ = nullptr;
  cudaGraphNode_t kernel_ = nullptr;
  cudaGraphNode_t copy_ = nullptr;
  cudaKernelNodeParams parameters_ = {};
};

template <typename Way>
double median_us(Way& way, const std::vector<GetBatch>& batches, uint32_t rounds,
                 cudaStream_t stream) {
  std::vector<double> times;
  for (uint32_t round = 0; round < rounds; ++round) {
    for (const GetBatch& batch : batches) {
      const auto begin = std::chrono::steady_clock::now();
      way.start(batch);
      cudaError_t state = cudaErrorNotReady;
      while (state == cudaErrorNotReady) state = cudaStreamQuery(stream);
      check(state, "a batch");
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      times.push_back(took.count());
    }
  }
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

}  // namespace

std::vector<LaunchTimes> measure_launches(const Variant<GetBatch>& variant,
                                          const std::vector<GetBatch>& batches,
                                          const uint8_t* frames, uint32_t rounds,
                                          cudaStream_t stream) {
  std::vector<LaunchTimes> times;
  for (const uint8_t* copied : {static_cast<const uint8_t*>(nullptr), frames}) {
    const std::string what = copied == nullptr ? "" : "copy, ";
    ByStream calls(variant, copied, stream);
    times.push_back({what + "calls", median_us(calls, batches, rounds, stream)});
    ByGraph graph(calls, batches.front(), copied, stream);
    times.push_back({what + "graph", median_us(graph, batches, rounds, stream)});
  }
  return times;
}

}  // namespace warpcache::ablation
