// SPDX-License-Identifier: Apache-2.0
//
// A worker group does the work of maintenance: a leader alone (on the host), or a leader with
// workers (on a device: the threads of a block) that share its tasks. The tasks are in survey.h,
// walk.h and sweep.h; the code is the same for one thread and for many.
//
// The leader calls run(). A worker calls serve(), which returns after stop(). Leader and workers
// communicate through words in memory and use no barrier of the device. So the leader may call
// run() from any place, also with a lock held, unless a task takes that lock (Task::kOldestEpoch
// takes none, so the segment lock may be held for it).
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
  // Before the first run(), and before any worker calls serve(). 0 workers: the leader works alone,
  // on the host only.
  // `sizes` has kWindowGranules entries; a leader alone does not need it.
  WC_HD void start(uint32_t workers, uint16_t* sizes) {
    workers_ = workers;
    done_ = 0;
    task_number_ = 0;
    new_items_ = 0;
    walk.sizes = sizes;
  }
  // Always on a device: code for a leader alone would stand there at every call of run().
  WC_HD bool has_workers() const {
#if defined(__CUDA_ARCH__)
    return true;
#else
    return workers_ != 0;
#endif
  }

  // Does a task with the arguments in the fields below; returns when it is done. Leader only.
  // `thread` is the leader's.
  WC_HD void run(const Core& core, ThreadContext& thread, Task task);
  // Ends serve() of all workers. start() may follow.
  WC_HD void stop() {
    if (has_workers()) begin(Task::kStop);
  }

  // Does the share of worker `worker`, counted from 0, of every task. `thread` needs only its
  // counters; several workers may share them where ThreadCounters allow it. On a device all threads
  // of a warp are workers.
  WC_HD void serve(const Core& core, ThreadContext& thread, uint32_t worker);

  // Arguments and results of the tasks. The leader uses them between tasks, the workers during a
  // task.
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
  uint32_t task_number_ = 0;  // number of the last task; a new value announces a task
  uint32_t done_ = 0;         // workers that have finished their share
  Task task_ = Task::kStop;
  uint32_t new_items_ = 0;  // of all workers: to be added to ThreadContext::new_items
};

namespace detail {

inline constexpr uint32_t kWorkerPausesMax = 64;

// One round of waiting for leader or workers. The host sleeps after a few rounds: a thread that
// only yields its core gets it back one time slice later when other threads compute.
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

// The threads of a warp continue together from here.
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

// Waits for the task after number `number`.
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
