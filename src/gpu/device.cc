// SPDX-License-Identifier: Apache-2.0
#include "gpu/device.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace warpcache::gpu {

namespace {

// Freeing memory waits for kernels, which may now never end.
std::atomic<bool> lost{false};

std::atomic<int> opened{0};  // the number of the device

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Why there is no device, and what to do about it. For a missing driver CUDA reports one that is
// too old.
std::string no_device_text(cudaError_t error) {
  if (error == cudaErrorNoDevice) {
    return "the NVIDIA driver finds no GPU: nvidia-smi must list one, and CUDA_VISIBLE_DEVICES, "
           "where it is set, name it; --engine=cpu needs none";
  }
  if (error != cudaErrorInsufficientDriver) return cudaGetErrorString(error);
  int driver = 0;
  int runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return "there is no NVIDIA driver, and so no GPU: install one (in a container: let it see the "
           "GPUs, docker run --gpus all) until nvidia-smi lists a GPU; --engine=cpu needs none";
  }
  (void)cudaRuntimeGetVersion(&runtime);
  return "the NVIDIA driver is for CUDA " + version_text(driver) +
         " at most, and this server for " + version_text(runtime) + ": install a newer driver";
}

}  // namespace

std::string open_device(int number, DeviceFacts* facts) {
  (void)setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  // Each batch under way has a stream. Those that share a queue to the GPU wait for each other;
  // CUDA has 8 by itself, 32 at most.
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
  if (error != cudaSuccess) return no_device_text(error);
  if (number < 0 || number >= count) {
    return "there is no GPU " + std::to_string(number) + ", only 0 to " + std::to_string(count - 1);
  }
  error = cudaSetDevice(number);
  cudaDeviceProp properties;
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, number);
  size_t free = 0;
  size_t total = 0;
  if (error == cudaSuccess) error = cudaMemGetInfo(&free, &total);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  opened.store(number);
  facts->number = number;
  facts->name = properties.name;
  facts->memory_bytes = total;
  facts->free_bytes = free;
  facts->multiprocessors = static_cast<uint32_t>(properties.multiProcessorCount);
  return "";
}

cudaError_t attach_thread() { return cudaSetDevice(opened.load()); }

bool DeviceFaults::check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return true;
  fail(what, cudaGetErrorString(error));
  return false;
}

void DeviceFaults::fail(const char* what, const char* why) {
  {
    const std::lock_guard guard(mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      why_ = what;
      if (*why != '\0') why_.append(": ").append(why);
    } catch (const std::bad_alloc&) {
      // The device has failed all the same.
    }
    lost.store(true);
    failed_.store(true, std::memory_order_release);
  }
  if (on_failure_) on_failure_(why_);
}

std::string DeviceFaults::why() const {
  const std::lock_guard guard(mutex_);
  return why_;
}

bool CudaMemory::allocate(Place place, uint64_t bytes, Content content) {
  reset();
  place_ = place;
  void* data = nullptr;
  const cudaError_t error = place == Place::kDevice
                                ? cudaMalloc(&data, bytes)
                                : cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  data_ = static_cast<uint8_t*>(data);
  bytes_ = bytes;
  if (content == Content::kAny) return true;
  if (place == Place::kHost) {
    std::memset(data_, 0, bytes_);
    return true;
  }
  // The driver clears device memory asynchronously, and our streams do not wait for that.
  return cudaMemset(data_, 0, bytes_) == cudaSuccess &&
         cudaStreamSynchronize(nullptr) == cudaSuccess;
}

bool PinnedMemory::pin(MutableBytes memory) {
  if (cudaHostRegister(memory.data, memory.size, cudaHostRegisterPortable) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  data_ = memory.data;
  return true;
}

PinnedMemory::~PinnedMemory() {
  if (data_ != nullptr && !lost.load()) (void)cudaHostUnregister(data_);
}

void CudaMemory::reset() {
  if (data_ == nullptr || lost.load()) return;
  (void)(place_ == Place::kDevice ? cudaFree(data_) : cudaFreeHost(data_));
  data_ = nullptr;
  bytes_ = 0;
}

CudaStream::~CudaStream() {
  if (stream_ != nullptr && !lost.load()) (void)cudaStreamDestroy(stream_);
}

bool CudaStream::create(Priority priority) {
  int lowest = 0;
  int highest = 0;
  if (cudaDeviceGetStreamPriorityRange(&lowest, &highest) != cudaSuccess) return false;
  const int value = priority == Priority::kHigh ? highest : lowest;
  return cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, value) == cudaSuccess;
}

}  // namespace warpcache::gpu
