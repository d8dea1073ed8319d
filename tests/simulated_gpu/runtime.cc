// SPDX-License-Identifier: Apache-2.0
//
// Streams, memory and the rest of CUDA's interface for the simulated GPU.
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/effort.h"
#include "simulated_gpu/block.h"

namespace simt {

namespace {

constexpr size_t kMemoryMib = 4096;
constexpr int kMultiprocessors = 4;
constexpr int kGarbage = 0xa5;
constexpr size_t kLargePagesMin = 4 << 20;
constexpr std::chrono::microseconds kQueryPause{500};

// How much of new memory holds garbage: more takes time, and a server takes some twenty regions at
// its start.
const size_t garbage_max = warpcache::testing_effort<size_t>(64 << 10, 1 << 20);

bool is_switched_on(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && std::string(value) == "1";
}

// Threads of the host that run blocks; one for each block that runs. All blocks of a grid run at
// the same time: a persistent kernel needs that.
class BlockPool {
 public:
  // Never destroyed: kernels may still run that never end.
  static BlockPool& instance() {
    static auto* const kPool = new BlockPool();
    return *kPool;
  }

  void run(const dim3& grid, const dim3& block, const std::function<void()>& body) {
    Place shape;
    shape.block_size = block.x;
    shape.grid_size = grid.x;
    std::mutex mutex;
    std::condition_variable all_done;
    uint32_t left = grid.x;
    for (uint32_t number = 0; number < grid.x; ++number) {
      give([&, number](BlockRunner& runner) {
        runner.run(shape, number, body);
        const std::lock_guard guard(mutex);
        if (--left == 0) all_done.notify_one();
      });
    }
    std::unique_lock lock(mutex);
    all_done.wait(lock, [&left] { return left == 0; });
  }

 private:
  using Work = std::function<void(BlockRunner&)>;

  void give(Work work) {
    const std::lock_guard guard(mutex_);
    work_.push_back(std::move(work));
    if (work_.size() > idle_) {
      ++idle_;
      std::thread([this] { serve(); }).detach();
    }
    wake_.notify_one();
  }

  void serve() {
    BlockRunner runner;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return !work_.empty(); });
      const Work work = std::move(work_.front());
      work_.pop_front();
      --idle_;
      lock.unlock();
      work(runner);
      lock.lock();
      ++idle_;
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> work_;
  size_t idle_ = 0;  // threads that wait for work or were just made
};

// With SIMT_GPU_ONE_KERNEL=1 one kernel runs at a time, in the order of the launches, as under a
// checker or a debugger.
class KernelOrder {
 public:
  static KernelOrder& instance() {
    static auto* const kOrder = new KernelOrder();
    return *kOrder;
  }
  uint64_t take_number() {
    const std::lock_guard guard(mutex_);
    return last_++;
  }
  void run(uint64_t number, const std::function<void()>& kernel) {
    if (!one_at_a_time_) return kernel();
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this, number] { return next_ == number; });
    lock.unlock();
    kernel();
    lock.lock();
    ++next_;
    ended_.notify_all();
  }

 private:
  const bool one_at_a_time_ = is_switched_on("SIMT_GPU_ONE_KERNEL");
  std::mutex mutex_;
  std::condition_variable ended_;
  uint64_t last_ = 0;
  uint64_t next_ = 0;
};

struct Region {
  size_t bytes;
  void* begin;
};

struct Memory {
  std::mutex mutex;
  std::map<void*, Region> regions;
};

Memory& memory() {
  static auto* const kMemory = new Memory();
  return *kMemory;
}

}  // namespace

// Of the calling thread.
cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

// Of the calling thread; each begins with device 0, as in CUDA.
int& current_device() {
  thread_local int number = 0;
  return number;
}

// The work of a stream runs in order, on one thread.
class Stream {
 public:
  Stream() : thread_([this] { serve(); }) {}
  ~Stream() {
    {
      const std::lock_guard guard(mutex_);
      ending_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  // Kernels may be launched by threads that use the stream's device.
  bool takes_kernels() const { return device_ == current_device(); }
  void add(std::function<void()> work) {
    {
      const std::lock_guard guard(mutex_);
      work_.push_back(std::move(work));
    }
    wake_.notify_one();
  }
  bool idle() {
    const std::lock_guard guard(mutex_);
    return work_.empty();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return work_.empty(); });
  }
  // Waits for all work so far. False: it does not end.
  bool drain(std::chrono::seconds patience) {
    std::unique_lock lock(mutex_);
    const uint64_t all = ended_ + work_.size();
    return done_.wait_for(lock, patience, [this, all] { return ended_ >= all; });
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return ending_ || !work_.empty(); });
      if (work_.empty()) return;
      const std::function<void()> work = work_.front();
      lock.unlock();
      work();
      lock.lock();
      work_.pop_front();
      ++ended_;
      done_.notify_all();
    }
  }

  const int device_ = current_device();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::deque<std::function<void()>> work_;  // the first is in progress
  uint64_t ended_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

// All streams but the default one.
class Streams {
 public:
  static Streams& instance() {
    static auto* const kStreams = new Streams();
    return *kStreams;
  }
  cudaStream_t make() {
    auto* const stream = new Stream();
    const std::lock_guard guard(mutex_);
    all_.insert(stream);
    return stream;
  }
  void destroy(cudaStream_t stream) {
    {
      const std::lock_guard guard(mutex_);
      all_.erase(stream);
    }
    delete stream;
  }
  // A device waits like this before memory is freed. With a persistent kernel it would wait
  // forever.
  void drain() {
    // Beside much other work a launch's last blocks have taken longer than twenty seconds.
    constexpr std::chrono::minutes kPatience{5};
    const std::lock_guard guard(mutex_);
    for (Stream* const stream : all_) {
      if (stream->drain(kPatience)) continue;
      (void)std::fputs("simulated GPU: memory is given back while a kernel stays\n", stderr);
      std::abort();
    }
  }

 private:
  std::mutex mutex_;
  std::set<Stream*> all_;
};

// The default stream, which other streams do not wait for. On a device it may work after the call
// has returned; here it always does.
class DefaultStream {
 public:
  static DefaultStream& instance() {
    static auto* const kStream = new DefaultStream();
    return *kStream;
  }
  void add(std::function<void()> work) {
    stream_.add([work = std::move(work)] {
      std::this_thread::sleep_for(kDelay);
      work();
    });
  }
  void wait() { stream_.wait(); }

 private:
  static constexpr auto kDelay = std::chrono::microseconds(500);

  Stream stream_;
};

// Has ended when the work is done that a stream had when it was recorded last.
class Event {
 public:
  void record(Stream& stream) {
    const uint64_t number = ++recorded_;
    stream.add([this, number] { reached_.store(number); });
  }
  bool has_ended() const { return reached_.load() == recorded_.load(); }

 private:
  std::atomic<uint64_t> recorded_{0};
  std::atomic<uint64_t> reached_{0};
};

cudaError_t enqueue(cudaStream_t stream, const dim3& grid, const dim3& block,
                    std::function<void()> body) {
  if (!stream->takes_kernels()) return last_error() = cudaErrorInvalidResourceHandle;
  const uint64_t number = KernelOrder::instance().take_number();
  stream->add([grid, block, number, body = std::move(body)] {
    KernelOrder::instance().run(number, [&] { BlockPool::instance().run(grid, block, body); });
  });
  return cudaSuccess;
}

}  // namespace simt

using simt::memory;

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

// SIMT_DRIVER is the version of the driver; 0: there is none.
cudaError_t cudaDriverGetVersion(int* version) {
  const char* const wanted = std::getenv("SIMT_DRIVER");
  if (wanted == nullptr) return cudaRuntimeGetVersion(version);
  *version = std::atoi(wanted);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  if (driver < runtime) return cudaErrorInsufficientDriver;
  const char* const wanted = std::getenv("SIMT_GPU");
  *count = wanted != nullptr ? std::atoi(wanted) : 0;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int number) {
  simt::current_device() = number;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* number) {
  *number = simt::current_device();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"simulated GPU", simt::kMultiprocessors};
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const char* const wanted = std::getenv("SIMT_GPU_MIB");
  const size_t mib = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : simt::kMemoryMib;
  *free = *total = mib << 20;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(simt::last_error(), cudaSuccess); }

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error";
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t used = (bytes + 15) / 16 * 16;
  const size_t whole = (used + page - 1) / page * page;
  void* const begin = mmap(nullptr, whole + page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return cudaErrorMemoryAllocation;
  mprotect(static_cast<char*>(begin) + whole, page, PROT_NONE);
  *data = static_cast<char*>(begin) + whole - used;
  std::memset(*data, simt::kGarbage, std::min(bytes, simt::garbage_max));
  // Tests take hundreds of MiB in all and fill them: with large pages that is done in a tenth of
  // the faults. Not for the garbage: to clear a large page takes longer than all else of a start.
  if (whole >= simt::kLargePagesMin) madvise(begin, whole, MADV_HUGEPAGE);
  const std::lock_guard guard(memory().mutex);
  memory().regions[*data] = {whole + page, begin};
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned int) {
  return cudaMalloc(data, bytes);
}

cudaError_t cudaFree(void* data) {
  simt::DefaultStream::instance().wait();
  simt::Streams::instance().drain();
  const std::lock_guard guard(memory().mutex);
  const auto region = memory().regions.find(data);
  if (region == memory().regions.end()) std::abort();
  munmap(region->second.begin, region->second.bytes);
  memory().regions.erase(region);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) { return cudaFree(data); }

// Kernels read all memory of the process anyway.
cudaError_t cudaHostRegister(void*, size_t, unsigned int) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

namespace simt {

namespace {

void clear(void* data, int value, size_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* const begin = static_cast<char*>(data);
  const uintptr_t end = reinterpret_cast<uintptr_t>(begin + bytes) / page * page;
  char* const whole = begin + (page - reinterpret_cast<uintptr_t>(begin) % page) % page;
  if (value != 0 || reinterpret_cast<uintptr_t>(whole) >= end) {
    std::memset(data, value, bytes);
    return;
  }
  // Gives whole pages back, which read as zeros later: unused memory takes none.
  const size_t pages = end - reinterpret_cast<uintptr_t>(whole);
  std::memset(begin, 0, static_cast<size_t>(whole - begin));
  madvise(whole, pages, MADV_DONTNEED);
  std::memset(whole + pages, 0, bytes - pages - static_cast<size_t>(whole - begin));
}

}  // namespace

}  // namespace simt

cudaError_t cudaMemset(void* data, int value, size_t bytes) {
  simt::DefaultStream::instance().add([data, value, bytes] { simt::clear(data, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  stream->add([data, value, bytes] { simt::clear(data, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  simt::DefaultStream::instance().wait();
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  stream->add([to, from, bytes] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = 0;
  *highest = -1;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int) {
  *stream = simt::Streams::instance().make();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  simt::Streams::instance().destroy(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == nullptr) {
    simt::DefaultStream::instance().wait();
    return cudaSuccess;
  }
  stream->wait();
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (stream->idle()) return cudaSuccess;
  // Hosts poll memory and ask this now and then. The blocks need the processor that such a host
  // keeps busy.
  std::this_thread::sleep_for(simt::kQueryPause);
  return cudaErrorNotReady;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  *event = new simt::Event();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->record(*stream);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->has_ended()) return cudaSuccess;
  std::this_thread::sleep_for(simt::kQueryPause);
  return cudaErrorNotReady;
}
