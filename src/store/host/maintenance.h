// SPDX-License-Identifier: Apache-2.0
//
// Keeps segments free on the host: a thread runs the Maintainer before segments run out. A worker
// that finds none free runs the same steps itself, between batches.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "base/status.h"
#include "store/reclaim/maintainer.h"

namespace warpcache::store {

class Maintenance {
 public:
  // What `core` points to outlives this. `thread` is used by maintenance alone. `limit_raised` is
  // called with a raised limit, in segments, before the first new segment is used.
  Maintenance(const Core& core, ThreadContext* thread, uint32_t reclaim_wait_ms_max,
              std::function<void(uint32_t segments)> limit_raised);
  ~Maintenance();

  // The thread calls `every_second` once a second, from `first` on, and reclaims when few segments
  // are free.
  void start(std::chrono::steady_clock::time_point first, void (*every_second)(void*),
             void* context);
  void stop();

  // There is work. From any thread, with locks held.
  void wake();

  // See Store. Outside batches.
  Status reclaim(uint64_t bytes);
  // Retires those of the `newest` last sealed young segments in which nothing is alive. Does
  // nothing while somebody else reclaims.
  void retire_dead(uint32_t newest);
  // Does all that is to do now.
  void maintain();
  // Sets the limit that maintenance moves to in small steps. The caller waits neither for them nor
  // for the thread. False, and nothing changes: see Maintainer::set_target().
  bool set_limit(uint32_t segments);
  // Seals the segments that maintenance copies to. REQUIRES: the thread has ended.
  void seal_all() { maintainer_.seal_all(); }
  void expire();  // once a second: bulk expiry, and part of a sweep

 private:
  void run(std::chrono::steady_clock::time_point second);
  void let_callers_go_first() const;
  void take_up_limit();
  template <typename Step>
  bool step(Step step);

  Core core_;
  uint32_t reclaim_wait_ms_max_;
  std::function<void(uint32_t segments)> limit_raised_;

  std::atomic<uint32_t> callers_{0};       // threads that wait for the mutex or hold it
  std::atomic<uint32_t> limit_wanted_{0};  // from set_limit(), not yet given to the Maintainer; 0:
                                           // none

  std::mutex mutex_;          // held by the thread that reclaims; guards what follows
  WorkerGroup worker_group_;  // without workers
  Evacuators evacuators_;     // without evacuators
  Maintainer maintainer_;

  std::mutex wake_mutex_;
  std::condition_variable wake_condition_;
  uint32_t awake_ = 0;  // atomic; 1: there is work
  std::atomic<bool> stopping_{false};
  void (*every_second_)(void*) = nullptr;
  void* context_ = nullptr;
  std::thread thread_;
};

}  // namespace warpcache::store
