// SPDX-License-Identifier: Apache-2.0
//
// Who does maintenance's work: the thread that leads it, alone (on the host), or together with
// workers (on a device: the threads of a block), to which it gives the tasks that can be shared.
// What a task does is in survey.h, walk.h and sweep.h, and is the same code for one and for many.
//
// The leader calls run(); a worker calls serve() and is in it until stop(). Leader and workers
// talk through words in memory that all of them reach; no barrier of the machine's is used, so the
// leader may call run() from anywhere, with locks held that no task takes (the segment lock for
// Task::kOldestEpoch).
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "store/reclaim/survey.h"
#include "store/reclaim/sweep.h"
#include "store/reclaim/walk.h"

#if !defined(__CUDA_ARCH__)
#include <time.h>
#endif

namespace warpcache::store {

enum class Task : uint32_t {
  kOldestEpoch,
  kSurvey,
  kCollect,
  kSizes,
  kJudge,
  kCopy,
  kMove,
  kSweep,
  kStop,  // ends serve()
};

class WorkerGroup {
 public:
  // Before the first run() with these workers, and before any of them calls serve(). None: the
  // leader works alone. `sizes` has kWindowGranules; not needed by a leader alone.
  WC_HD void start(uint32_t workers, uint16_t* sizes) {
    workers_ = workers;
    done_ = 0;
    task_number_ = 0;
    new_items_ = 0;
    walk.sizes = sizes;
  }
  WC_HD bool has_workers() const { return workers_ != 0; }

  // Does a task with what is in the fields below; returns when it is done. Leader only. `thread` is
  // the leader's.
  WC_HD void run(const Core& core, ThreadContext& thread, Task task);
  // Sends the workers home: mustered anew they come back.
  WC_HD void stop() {
    if (has_workers()) begin(Task::kStop);
  }

  // Worker `worker`, from 0 on, does its share of every task. `thread` has counters and nothing
  // else that is looked at; it is the worker's own, its counters may be others' as well where
  // ThreadCounters allow it. On a device all threads of a warp are workers.
  WC_HD void serve(const Core& core, ThreadContext& thread, uint32_t worker);

  // What tasks are about. The leader's between tasks, the workers' during them.
  uint64_t oldest_epoch = 0;
  SurveyTask survey;
  CollectTask collect;
  Walk walk;
  SweepTask sweep;

 private:
  WC_HD void begin(Task task) {
    task_ = task;
    store_relaxed(&done_, 0);
    store_release(&task_number_, load_relaxed(&task_number_) + 1);
  }
  WC_HD Task next_task(uint32_t& number) const;
  WC_HD void work(const Core& core, ThreadContext& thread, Task task, const Share& share);

  uint32_t workers_ = 0;
  uint32_t task_number_ = 0;  // counts tasks; who sees it count up sees the task
  uint32_t done_ = 0;         // workers that have done their share
  Task task_ = Task::kStop;
  uint32_t new_items_ = 0;  // of the workers: what they would add to ThreadContext::new_items
};

namespace detail {

inline constexpr uint32_t kWorkerPausesMax = 64;

// One turn of waiting for leader or workers. On the host it sleeps soon: who only gives the core
// away gets it back a time slice later where others compute.
WC_HD inline void wait_round(uint32_t round) {
#if !defined(__CUDA_ARCH__)
  if (round >= kWorkerPausesMax) {
    const timespec pause = {0, 20'000};
    nanosleep(&pause, nullptr);
    return;
  }
#endif
  spin_wait(round);
}

// Threads that wait for each other's branches go on together from here.
WC_HD inline void converge() {
#if defined(__CUDA_ARCH__)
  __syncwarp();
#endif
}

}  // namespace detail

WC_HD inline void WorkerGroup::work(const Core& core, ThreadContext& thread, Task task,
                                    const Share& share) {
  switch (task) {
    case Task::kOldestEpoch: {
      const uint32_t slots = load_seq_cst(&core.shared->epoch_slots);
      const uint64_t oldest = store::oldest_epoch(core.epochs, slots, share.worker, share.workers);
      if (oldest != UINT64_MAX) lower_to(&oldest_epoch, oldest);
      break;
    }
    case Task::kSurvey:
      survey_share(core, survey, share);
      break;
    case Task::kCollect:
      collect_share(core, survey, collect, share);
      break;
    case Task::kSizes:
      size_share(walk, share);
      break;
    case Task::kJudge:
      judge_share(core, thread, walk, share);
      break;
    case Task::kCopy:
      copy_share(walk, share);
      break;
    case Task::kMove:
      move_share(core, thread, walk, share);
      break;
    case Task::kSweep:
      sweep_share(core, thread, sweep, share);
      break;
    case Task::kStop:
      break;
  }
}

WC_HD inline void WorkerGroup::run(const Core& core, ThreadContext& thread, Task task) {
  if (!has_workers()) {
    work(core, thread, task, {});
    return;
  }
  begin(task);
  for (uint32_t round = 0; load_acquire(&done_) != workers_; ++round) detail::wait_round(round);
  thread.new_items += static_cast<int32_t>(load_relaxed(&new_items_));
  store_relaxed(&new_items_, 0);
}

// The task after the one that `number` stands for.
WC_HD inline Task WorkerGroup::next_task(uint32_t& number) const {
  for (uint32_t round = 0; load_acquire(&task_number_) == number; ++round) {
    detail::wait_round(round);
  }
  ++number;
  detail::converge();
  return task_;
}

WC_HD inline void WorkerGroup::serve(const Core& core, ThreadContext& thread, uint32_t worker) {
  uint32_t number = 0;
  const Share share = {worker, workers_};
  for (Task task = next_task(number); task != Task::kStop; task = next_task(number)) {
    work(core, thread, task, share);
    if (thread.new_items != 0) fetch_add(&new_items_, static_cast<uint32_t>(thread.new_items));
    thread.new_items = 0;
    fetch_add(&done_, 1);
  }
}

}  // namespace warpcache::store
