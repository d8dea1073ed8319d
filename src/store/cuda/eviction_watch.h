// SPDX-License-Identifier: Apache-2.0
//
// Reports to an observer what a device evicts. While the observer wants that, the kernels log it
// (index/eviction_log.h), and a thread gives the records to the observer, as fast as that takes
// them. At other times the thread sleeps and the kernels log nothing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "gpu/device.h"
#include "store/index/eviction_log.h"
#include "store/observer.h"

namespace warpcache::store {

class EvictionWatch {
 public:
  // `observer` (null: there is none) and `faults` outlive the object.
  EvictionWatch(Observer* observer, gpu::DeviceFaults& faults)
      : observer_(observer), faults_(faults) {}
  EvictionWatch(const EvictionWatch&) = delete;
  EvictionWatch& operator=(const EvictionWatch&) = delete;
  ~EvictionWatch() { stop(); }

  // There is an observer. If not, no other function but stop() is called.
  bool on() const { return observer_ != nullptr; }

  // False: the system or the device does not give the memory.
  bool take_memory();
  // Starts the thread. `set_log` makes kernels log to the EvictionLog at this address of the
  // device, 0: to none; false: the device has failed. Returns the error as text, or "". REQUIRES:
  // take_memory() was true.
  std::string start(std::function<bool(uint64_t)> set_log);
  // Ends the thread. REQUIRES: begin() is not called any more.
  void stop();

  // From its return on evictions are logged. They are reported until the observer no longer wants
  // them. From any thread.
  void begin();
  // After each call of set_log(), and whenever the device has been asked: EvictionLog::missed. One
  // thread at a time.
  void saw_missed(uint32_t missed);

 private:
  void run();
  bool take(bool is_told);
  void push_taken();

  Observer* const observer_;
  gpu::DeviceFaults& faults_;
  std::function<bool(uint64_t)> set_log_;
  gpu::CudaStream stream_;
  gpu::CudaMemory log_;      // device: EvictionLog
  gpu::CudaMemory records_;  // pinned
  gpu::CudaMemory pushed_;   // pinned: what push_taken() copies
  uint32_t missed_seen_ = 0;

  std::mutex mutex_;  // guards what follows
  std::condition_variable condition_;
  uint32_t taken_ = 0;  // records
  bool logs_ = false;   // the kernels log
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace warpcache::store
