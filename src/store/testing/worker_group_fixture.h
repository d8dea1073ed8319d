// SPDX-License-Identifier: Apache-2.0
//
// For tests: maintenance by threads of the host that form a worker group, as the threads of a block
// do on a device.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>

#include "base/testing/patience.h"
#include "store/reclaim/maintainer.h"
#include "store/testing/store_fixture.h"

namespace warpcache::store {

// Workers that serve until the object is destroyed. The thread that made it leads.
class ThreadWorkerGroup {
 public:
  // 0 workers: the leader works alone.
  ThreadWorkerGroup(Store* store, uint32_t workers)
      : store_(store), contexts_(workers + 1), sizes_(kWindowGranules) {
    for (ThreadContext& context : contexts_) {
      EXPECT_EQ(store->register_thread(&context), Status::kOk);
    }
    worker_group_.start(workers, sizes_.data());
    for (uint32_t i = 0; i < workers; ++i) {
      threads_.emplace_back([this, i] { worker_group_.serve(core(), contexts_[i + 1], i); });
    }
  }
  ~ThreadWorkerGroup() {
    worker_group_.stop();
    for (std::thread& thread : threads_) thread.join();
    for (ThreadContext& context : contexts_) store_->unregister_thread(&context);
  }
  ThreadWorkerGroup(const ThreadWorkerGroup&) = delete;
  ThreadWorkerGroup& operator=(const ThreadWorkerGroup&) = delete;

  Core core() const { return store_->ref().core; }
  WorkerGroup* worker_group() { return &worker_group_; }
  ThreadContext* leader() { return contexts_.data(); }

 private:
  Store* store_;
  WorkerGroup worker_group_;
  std::vector<ThreadContext> contexts_;
  std::vector<uint16_t> sizes_;
  std::vector<std::thread> threads_;
};

// Evacuators on threads of the host; their worker groups have no workers.
class ThreadEvacuators {
 public:
  ThreadEvacuators(Store* store, uint32_t evacuators) : store_(store), contexts_(evacuators) {
    evacuators_.launch_number = 1;
    evacuators_.count = evacuators;
    for (ThreadContext& context : contexts_) {
      EXPECT_EQ(store->register_thread(&context), Status::kOk);
    }
    evacuators_.list = static_cast<Evacuator*>(::operator new(evacuators * sizeof(Evacuator)));
    for (uint32_t i = 0; i < evacuators; ++i) {
      Evacuator* const evacuator =
          new (&evacuators_.list[i]) Evacuator(store->ref().core, contexts_[i].counters);
      evacuator->worker_group.start(0, nullptr);
      threads_.emplace_back([this, evacuator] {
        evacuator->serve(evacuators_.launch_number, &evacuators_.last_ended);
      });
    }
  }
  ~ThreadEvacuators() {
    evacuators_.stop();
    for (std::thread& thread : threads_) thread.join();
    ::operator delete(evacuators_.list);
    for (ThreadContext& context : contexts_) store_->unregister_thread(&context);
  }
  ThreadEvacuators(const ThreadEvacuators&) = delete;
  ThreadEvacuators& operator=(const ThreadEvacuators&) = delete;

  Evacuators* evacuators() { return &evacuators_; }

 private:
  Store* store_;
  std::vector<ThreadContext> contexts_;
  Evacuators evacuators_;
  std::vector<std::thread> threads_;
};

// Does what store::Maintenance does, with a worker group and evacuators. REQUIRES: the store has no
// maintenance thread, and nobody calls its reclaim() or maintain().
class WorkerGroupMaintenance {
 public:
  WorkerGroupMaintenance(Store* store, uint32_t workers, uint32_t evacuators)
      : worker_group_(store, workers),
        evacuators_(store, evacuators),
        maintainer_(worker_group_.core(), worker_group_.leader(), worker_group_.worker_group(),
                    evacuators_.evacuators()),
        thread_([this] { run(); }) {}
  ~WorkerGroupMaintenance() {
    done_ = true;
    thread_.join();
  }

  uint64_t copied_by_evacuators() {
    const std::lock_guard guard(mutex_);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < evacuators_.evacuators()->count; ++i)
      sum += evacuators_.evacuators()->list[i].copied_bytes();
    return sum;
  }

  Status reclaim(uint64_t bytes) {
    using SteadyClock = std::chrono::steady_clock;
    SteadyClock::time_point deadline = SteadyClock::now() + kPatience;
    while (SteadyClock::now() < deadline) {
      Maintainer::Space space = Maintainer::Space::kNone;
      {
        const std::lock_guard guard(mutex_);
        space = maintainer_.reclaim(bytes);
      }
      if (space == Maintainer::Space::kReady) return Status::kOk;
      if (space == Maintainer::Space::kNone) break;
      if (space == Maintainer::Space::kProgress) deadline = SteadyClock::now() + kPatience;
      if (space == Maintainer::Space::kWait)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return Status::kOutOfMemory;
  }

 private:
  void run() {
    while (!done_) {
      {
        const std::lock_guard guard(mutex_);
        maintainer_.expire();
        (void)maintainer_.maintain(Maintainer::kStepsMax);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  ThreadWorkerGroup worker_group_;
  std::mutex mutex_;  // guards the maintainer, which one thread uses at a time
  ThreadEvacuators evacuators_;
  Maintainer maintainer_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace warpcache::store
