// SPDX-License-Identifier: Apache-2.0
//
// How the scheduler hands events to persistent workers: as tasks in rings. Device code, called by
// whole warps of the scheduler's block.
#pragma once

#include "edge/device/words.cuh"

namespace warpcache::edge {

// In the scheduler's shared memory, guarded by `lock`.
struct RingShared {
  uint32_t pushed[kRings];
  uint32_t copied[kRings];    // all tasks before this one were copied by their workers
  uint32_t finished[kRings];  // as far as it was looked at
  uint32_t workers[kRings];
  uint32_t unreleased[kRings];  // EDGE_WAIT_RELEASE_ALL: tasks since the last release
  uint64_t unreleased_ns[kRings];
  uint32_t urgent_pushed;
  uint32_t urgent_finished;
  uint32_t lock;
};

class RingDispatch {
 public:
  __device__ RingDispatch(const View& view, RingShared& shared) : view_(view), shared_(shared) {}

  // Called by one thread of the block, before a barrier.
  __device__ void reset() {
    const uint32_t workers = gridDim.x - 1;
    for (uint32_t i = 0; i < kRings; ++i) {
      shared_.pushed[i] = shared_.copied[i] = shared_.finished[i] = shared_.unreleased[i] = 0;
    }
    shared_.workers[0] = workers - view_.reserved_workers;
    shared_.workers[1] = view_.reserved_workers;
    shared_.urgent_pushed = shared_.urgent_finished = load_device(&view_.state->urgent_finished);
    shared_.lock = 0;
  }

  __device__ void open() {
    if (lane() == 0) {
      while (atomicExch(&shared_.lock, 1u) != 0) __nanosleep(20);
    }
    __syncwarp();
  }
  __device__ void close() {
    __syncwarp();
    if (lane() != 0) return;
    for (uint32_t i = 0; i < kRings; ++i) release_waiting(i, false);
    __threadfence_block();
    atomicExch(&shared_.lock, 0u);
  }

  // Starts an event, whose entry's words lie in `words`: word i of a lane is 32 * i + lane. False:
  // not now. REQUIRES: open().
  template <uint32_t kLoads>
  __device__ bool start(const Facts& facts, uint32_t event, uint32_t number, uint32_t blocks,
                        const uint64_t (&words)[kLoads]) {
    const uint32_t tasks = blocks < kTasksMax ? blocks : kTasksMax;
    uint32_t plan = 0;
    if (__any_sync(~0u, !goes_at_once(facts.priority, tasks)) != 0) {
      plan = lane() == 0 ? choose(facts.priority, tasks) : 0;
      plan = __shfl_sync(~0u, plan, 0);
      if (plan == kNotNow) return false;
    }
    const uint32_t pushed = shared_.pushed[plan];
    if (!has_slots(plan, pushed, tasks)) return false;
    const uint32_t first_word = task_word(event, facts.function, facts.words, facts.task_flags);
    const auto completion =
        reinterpret_cast<uint64_t>(&facts.completions[(number - 1) & (facts.depth - 1)]);
    const uint32_t count = kTaskHeadWords + facts.words;
    // Several tasks at once, where their words leave lanes free.
    const uint32_t shift = count <= kWarp / 4 ? 3 : count <= kWarp / 2 ? 4 : 5;
    const uint32_t at = lane() & ((1u << shift) - 1);
    uint32_t word = __shfl_sync(~0u, half_of(words[0]), (at - (kTaskHeadWords - 1)) % kWarp);
    if (at == 0) word = first_word;
    if (at == 2) word = number;
    if (at == 3) word = static_cast<uint32_t>(completion);
    if (at == 4) word = static_cast<uint32_t>(completion >> 32);
    for (uint32_t task = lane() >> shift; task < tasks; task += kWarp >> shift) {
      const uint32_t ticket = pushed + task;
      uint64_t* const slot = view_.state->rings[plan].tasks[ticket % kRingSlots];
      if (at == 1) word = task | (tasks - 1) << 8 | blocks << 16;
      if (at < count) store_device(&slot[at], numbered(ticket + 1, word));
    }
    if (count > kWarp) store_long(plan, pushed, tasks, facts.words, words);
    __syncwarp();
    if (lane() == 0) note_pushed(plan, tasks, facts.priority);
    __syncwarp();
    return true;
  }

  // What has waited for long enough.
  __device__ void manage() {
    if (view_.wait != EDGE_WAIT_RELEASE_ALL) return;
    open();
    close();
  }

  // Waits until all tasks are finished, and ends the workers. Called by one thread, when no warp
  // starts events any more. False: they do not end in time.
  __device__ bool finish(uint64_t patience_ns) {
    const uint64_t begin = gpu::global_time_ns();
    bool all = true;
    for (uint32_t i = 0; i < kRings; ++i) {
      release_waiting(i, true);
      Ring& ring = view_.state->rings[i];
      while (load_device(&ring.finished) != shared_.pushed[i]) {
        __nanosleep(1000);
        if (gpu::global_time_ns() - begin > patience_ns) {
          all = false;
          break;
        }
      }
      store_release_system(&ring.stop, 1);
    }
    return all;
  }

 private:
  static constexpr uint32_t kNotNow = 0xffffffff;

  // The usual case of choose(): all lanes know that ring 0 takes a normal event.
  __device__ bool goes_at_once(uint32_t priority, uint32_t tasks) const {
    const uint32_t workers = shared_.workers[0];
    const uint32_t waiting = shared_.pushed[0] - shared_.finished[0];
    return priority == EDGE_PRIORITY_NORMAL && shared_.urgent_pushed == shared_.urgent_finished &&
           workers != 0 && waiting + tasks <= workers + workers / 4;
  }

  // The ring for an event, or kNotNow. Lane 0.
  __device__ uint32_t choose(uint32_t priority, uint32_t tasks) {
    if (priority != EDGE_PRIORITY_2 && shared_.urgent_pushed != shared_.urgent_finished) {
      shared_.urgent_finished = load_device(&view_.state->urgent_finished);
      if (shared_.urgent_pushed != shared_.urgent_finished) return kNotNow;
    }
    if (priority != EDGE_PRIORITY_NORMAL) {
      if (shared_.workers[1] != 0 &&
          (shared_.workers[0] == 0 || fits(1, tasks, shared_.workers[1]))) {
        return 1;
      }
      return 0;
    }
    const uint32_t workers = shared_.workers[0];
    if (workers == 0) return kNotNow;
    // Tasks that no worker can take yet would delay events with a priority.
    return fits(0, tasks, workers + workers / 4) ? 0 : kNotNow;
  }

  __device__ bool fits(uint32_t ring, uint32_t tasks, uint32_t limit) {
    if (shared_.pushed[ring] - shared_.finished[ring] + tasks <= limit) return true;
    shared_.finished[ring] = load_device(&view_.state->rings[ring].finished);
    const uint32_t waiting = shared_.pushed[ring] - shared_.finished[ring];
    return waiting == 0 || waiting + tasks <= limit;
  }

  // The slots of the next tasks were copied by their last workers. The whole warp.
  __device__ bool has_slots(uint32_t ring, uint32_t pushed, uint32_t tasks) {
    uint32_t copied = shared_.copied[ring];
    if (pushed + tasks - copied <= kRingSlots / 2) return true;
    const Ring& there = view_.state->rings[ring];
    while (copied != pushed) {
      const uint32_t at = copied + lane();
      const bool done = static_cast<int32_t>(at - pushed) < 0 &&
                        load_acquire_device(&there.copied[at % kRingSlots]) == at + 1;
      const uint32_t not_done = ~__ballot_sync(~0u, done);
      const uint32_t more = not_done == 0 ? kWarp : static_cast<uint32_t>(__ffs(not_done)) - 1;
      copied += more;
      if (more < kWarp) break;
    }
    if (lane() == 0) shared_.copied[ring] = copied;
    __syncwarp();
    return pushed + tasks - copied <= kRingSlots;
  }

  // The words of tasks that a warp does not store at once.
  template <uint32_t kLoads>
  __device__ void store_long(uint32_t ring, uint32_t pushed, uint32_t tasks, uint32_t parameters,
                             const uint64_t (&words)[kLoads]) {
    for (uint32_t task = 0; task < tasks; ++task) {
      const uint32_t ticket = pushed + task;
      uint64_t* const slot = view_.state->rings[ring].tasks[ticket % kRingSlots];
#pragma unroll
      for (uint32_t i = 0; i < kLoads; ++i) {
        const uint32_t from = i * kWarp + lane();
        const uint32_t at = kTaskHeadWords - 1 + from;
        if (at >= kWarp && from <= parameters) {
          store_device(&slot[at], numbered(ticket + 1, half_of(words[i])));
        }
      }
    }
  }

  __device__ void note_pushed(uint32_t ring, uint32_t tasks, uint32_t priority) {
    shared_.pushed[ring] += tasks;
    if (priority == EDGE_PRIORITY_2) ++shared_.urgent_pushed;
    if (view_.wait == EDGE_WAIT_TARGETED) add_to(&view_.state->counts.releases, tasks);
    if (view_.wait != EDGE_WAIT_RELEASE_ALL) return;
    if (shared_.unreleased[ring] == 0) shared_.unreleased_ns[ring] = gpu::global_time_ns();
    shared_.unreleased[ring] += tasks;
  }

  // Lane 0.
  __device__ void release_waiting(uint32_t ring, bool all) {
    if (view_.wait != EDGE_WAIT_RELEASE_ALL || shared_.unreleased[ring] == 0) return;
    if (!all && shared_.unreleased[ring] < view_.release_count &&
        gpu::global_time_ns() - shared_.unreleased_ns[ring] < view_.release_ns_max) {
      return;
    }
    shared_.unreleased[ring] = 0;
    __threadfence();
    atomicAdd(&view_.state->rings[ring].release, 1u);
    add_to(&view_.state->counts.releases, shared_.workers[ring]);
  }

  const View& view_;
  RingShared& shared_;
};

}  // namespace warpcache::edge
