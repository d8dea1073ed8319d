// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "gpu/device.h"
#include "offline/background.h"

namespace warpcache::offline {

namespace {

using gpu::CudaMemory;
using gpu::CudaStream;
using SteadyClock = std::chrono::steady_clock;

constexpr uint32_t kThreads = 1024;
constexpr uint64_t kVectorBytes = uint64_t{kBackgroundBlocks} * kThreads * sizeof(float);
constexpr uint32_t kTrialLoops = 20000;
constexpr uint32_t kUnderWay = 4;  // launches that the GPU has at a time

__global__ void multiply(const volatile float* one, const volatile float* other,
                         volatile float* product, uint32_t first_block, uint32_t loops) {
  const uint32_t at = (first_block + blockIdx.x) * blockDim.x + threadIdx.x;
  for (uint32_t i = 0; i < loops; ++i) product[at] = one[at] * other[at];
}

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

double ms_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - begin).count();
}

struct Vectors {
  Vectors() {
    const auto device = CudaMemory::Place::kDevice;
    if (!one.allocate(device, kVectorBytes) || !other.allocate(device, kVectorBytes) ||
        !product.allocate(device, kVectorBytes) || !stream.create(CudaStream::Priority::kNormal)) {
      throw std::runtime_error("there is too little memory for background work");
    }
  }
  void launch(uint32_t first_block, uint32_t blocks, uint32_t loops) {
    multiply<<<blocks, kThreads, 0, stream.get()>>>(one.as<float>(), other.as<float>(),
                                                    product.as<float>(), first_block, loops);
    check(cudaGetLastError());
  }

  CudaMemory one;
  CudaMemory other;
  CudaMemory product;
  CudaStream stream;
};

}  // namespace

uint32_t BackgroundWork::loops_for(double ms) {
  Vectors vectors;
  double took = 0;
  for (int i = 0; i < 2; ++i) {  // the first loads the kernel
    const SteadyClock::time_point begin = SteadyClock::now();
    vectors.launch(0, kBackgroundBlocks, kTrialLoops);
    check(cudaStreamSynchronize(vectors.stream.get()));
    took = ms_since(begin);
  }
  return std::max(1u, static_cast<uint32_t>(kTrialLoops * ms / took));
}

class BackgroundWork::Worker {
 public:
  Worker(const BackgroundConfig& config, uint32_t loops) : config_(config), loops_(loops) {
    for (cudaEvent_t& event : ended_) {
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
    check(cudaGetDevice(&device_));
    thread_ = std::thread([this] { work(); });
  }
  ~Worker() {
    if (thread_.joinable()) (void)finish();
    for (cudaEvent_t event : ended_) (void)cudaEventDestroy(event);
  }

  double stop() {
    const double ms = finish();
    if (failure_) std::rethrow_exception(failure_);
    return ms;
  }

 private:
  double finish() {
    stops_ = true;
    thread_.join();
    return ms_;
  }

  void work() {
    try {
      check(cudaSetDevice(device_));
      const SteadyClock::time_point begin = SteadyClock::now();
      uint64_t launched = 0;
      for (; !stops_ || launched < config_.launches; ++launched) {
        cudaEvent_t& event = ended_[launched % kUnderWay];
        if (launched >= kUnderWay) check(cudaEventSynchronize(event));
        launch(static_cast<uint32_t>(launched % config_.launches));
        check(cudaEventRecord(event, vectors_.stream.get()));
      }
      check(cudaStreamSynchronize(vectors_.stream.get()));
      ms_ = ms_since(begin) * config_.launches / static_cast<double>(launched);
    } catch (const std::runtime_error&) {
      failure_ = std::current_exception();
    }
  }

  // Launches part `number` of a run.
  void launch(uint32_t number) {
    if (config_.cut == BackgroundConfig::Cut::kTime) {
      vectors_.launch(0, kBackgroundBlocks, std::max(1u, loops_ / config_.launches));
      return;
    }
    const uint32_t first = number * kBackgroundBlocks / config_.launches;
    const uint32_t end = (number + 1) * kBackgroundBlocks / config_.launches;
    vectors_.launch(first, end - first, loops_);
  }

  BackgroundConfig config_;
  uint32_t loops_;
  Vectors vectors_;
  std::array<cudaEvent_t, kUnderWay> ended_ = {};
  int device_ = 0;
  std::atomic<bool> stops_{false};
  double ms_ = 0;
  std::exception_ptr failure_;
  std::thread thread_;
};

BackgroundWork::BackgroundWork(const BackgroundConfig& config, uint32_t loops)
    : worker_(std::make_unique<Worker>(config, loops)) {}
BackgroundWork::~BackgroundWork() = default;
double BackgroundWork::stop() { return worker_->stop(); }

BackgroundFigures run_background(const BackgroundProcess& process) {
  gpu::DeviceFacts facts;
  const std::string failure = gpu::open_device(static_cast<int>(process.gpu), &facts);
  if (!failure.empty()) throw std::runtime_error(failure);
  constexpr double kRunMs = 30;  // of a launch that is alone: as the paper's
  BackgroundFigures figures;
  figures.loops = process.loops != 0 ? process.loops : BackgroundWork::loops_for(kRunMs);
  BackgroundWork work(process.config, figures.loops);
  std::this_thread::sleep_for(std::chrono::duration<double>(process.seconds));
  figures.run_ms = work.stop();
  return figures;
}

}  // namespace warpcache::offline
