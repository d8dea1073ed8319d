// SPDX-License-Identifier: Apache-2.0
//
// The card: choosing one, its memory, and what happens when it fails.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace warpcache::gpu {

struct DeviceFacts {
  int number = 0;
  std::string name;
  uint64_t memory_bytes = 0;
  uint64_t free_bytes = 0;
  uint32_t multiprocessors = 0;
};

// Makes device `number` the one that this process uses. Returns what is wrong, or "". To be called
// before all else: kernels are loaded at once, because loading waits for those that run.
std::string open_device(int number, DeviceFacts* facts);

// Makes the device of open_device() the one that the calling thread uses. By every other thread,
// before all else that it asks of CUDA, and while there is memory: the driver keeps some for each
// thread, taken at the thread's first call, and does not survive that the system refuses it.
cudaError_t attach_thread();

// Errors of the card. After the first nothing that it holds can be trusted: it has failed for good.
// From any thread.
class DeviceFaults {
 public:
  // `on_failure` is called once, by the thread that meets the first error.
  void listen(std::function<void(const std::string&)> on_failure) {
    on_failure_ = std::move(on_failure);
  }

  // True: no error. `what` was being done. These take no memory that they cannot do without.
  bool check(cudaError_t error, const char* what);
  // Something that is no error of CUDA's, such as work that does not end.
  void fail(const char* what, const char* why = "");
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  std::string why() const;

 private:
  std::function<void(const std::string&)> on_failure_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::string why_;
};

// Memory of the device, or pinned memory of the host that the device reaches at the same address.
// Taken at the start and kept: taking more would wait for kernels that never end.
class CudaMemory {
 public:
  enum class Place : uint8_t { kDevice, kHost };
  enum class Content : uint8_t { kZeros, kAny };

  CudaMemory() = default;
  ~CudaMemory() { reset(); }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  // False: there is not that much.
  bool allocate(Place place, uint64_t bytes, Content content = Content::kZeros);
  // After a failure of the device nothing is given back.
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
