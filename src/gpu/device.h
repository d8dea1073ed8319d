// SPDX-License-Identifier: Apache-2.0
//
// A GPU: choosing one, its memory, and its failures.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "base/bytes.h"

namespace warpcache::gpu {

struct DeviceFacts {
  int number = 0;
  std::string name;
  uint64_t memory_bytes = 0;
  uint64_t free_bytes = 0;
  uint32_t multiprocessors = 0;
};

// Selects device `number` for this process. Returns the error as text, or "". Call it before
// everything else: it loads all kernels, since loading one later waits for running kernels.
std::string open_device(int number, DeviceFacts* facts);

// Selects the device of open_device() for the calling thread. Every other thread calls it before
// its first other call of CUDA, and while there is memory: the driver allocates some at the first
// call of each thread, and crashes if the system refuses it.
cudaError_t attach_thread();

// Errors of the device. After the first error none of its memory can be trusted: the device has
// failed for good. Any thread may report one.
class DeviceFaults {
 public:
  // Calls `on_failure` once, in the thread that reports the first error.
  void listen(std::function<void(const std::string&)> on_failure) {
    on_failure_ = std::move(on_failure);
  }

  // True: no error. `what` names the operation. check() and fail() allocate no memory that they
  // cannot do without.
  bool check(cudaError_t error, const char* what);
  // Reports a failure that is no error of CUDA, such as work that does not end.
  void fail(const char* what, const char* why = "");
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  std::string why() const;

 private:
  std::function<void(const std::string&)> on_failure_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::string why_;
};

// Device memory, or pinned host memory that the device reaches at the same address. It is allocated
// at the start and kept: allocating more would wait for persistent kernels.
class CudaMemory {
 public:
  enum class Place : uint8_t { kDevice, kHost };
  enum class Content : uint8_t { kZeros, kAny };

  CudaMemory() = default;
  ~CudaMemory() { reset(); }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  // False: there is not enough memory.
  bool allocate(Place place, uint64_t bytes, Content content = Content::kZeros);
  // Frees the memory. After a failure of the device nothing is freed.
  void reset();

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  Place place_ = Place::kDevice;
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// Memory of others, which the GPU reads and writes at the same addresses.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // False: the system refuses it. REQUIRES: `memory` stays until the end of this object.
  bool pin(MutableBytes memory);

 private:
  uint8_t* data_ = nullptr;
};

class CudaStream {
 public:
  enum class Priority : uint8_t { kNormal, kHigh };

  CudaStream() = default;
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  bool create(Priority priority);
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace warpcache::gpu
