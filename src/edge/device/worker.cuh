// SPDX-License-Identifier: Apache-2.0
//
// Persistent workers: blocks that wait for tasks and run them. Device code.
#pragma once

#include "edge/device/barrier.cuh"
#include "edge/device/event.cuh"
#include "edge/device/finish.cuh"
#include "edge/device/words.cuh"
#include "gpu/dynamic_shared.cuh"

namespace warpcache::edge {

// How a worker gets tasks, by its first warp. All functions are called by the whole warp.
class TaskSource {
 public:
  __device__ TaskSource(const View& view, Ring& ring) : view_(view), ring_(ring) {}

  // Waits for a task, and copies its words without numbers to `task`, in shared memory. False: no
  // more come.
  __device__ bool next(uint32_t* task) {
    uint32_t ticket = 0;
    const bool got = view_.wait == EDGE_WAIT_TARGETED ? wait_for_own(&ticket, task)
                                                      : wait_for_any(&ticket, task);
    if (lane() == 0) flush();
    return got;
  }

 private:
  // Loads between two looks whether the workers end, and between two reports of counts.
  static constexpr uint32_t kSeldom = 16;
  static constexpr uint32_t kRare = 4096;
  static constexpr uint32_t kEager = 4;

  __device__ bool wait_for_own(uint32_t* ticket, uint32_t* task) {
    uint32_t own = lane() == 0 ? atomicAdd(&ring_.next_ticket, 1u) : 0;
    *ticket = own = __shfl_sync(~0u, own, 0);
    if (!wait_for_turn(own)) return copy(own, task);
    for (uint32_t round = 0;; ++round) {
      if (lane() == 0) ++barrier_polls_;
      if (copy(own, task)) return true;
      if (round % kSeldom == kSeldom - 1 && stops()) return copy(own, task);
      if (round % kRare == 0 && lane() == 0) flush();
      pause(round);
    }
  }

  // While others are before it, a worker looks seldom, and at the place of an earlier task: only
  // the next kEager ones are ready at once. False: no more tasks come.
  __device__ bool wait_for_turn(uint32_t own) {
    if (own < kEager) return true;
    const uint32_t earlier = own - kEager;
    for (uint32_t round = 0;; ++round) {
      uint32_t go = 0;
      if (lane() == 0) {
        ++barrier_polls_;
        const uint64_t word = load_device(&ring_.tasks[earlier % kRingSlots][0]);
        if (static_cast<int32_t>(number_of(word) - (earlier + 1)) >= 0) go = 1;
        if (go == 0 && round % kSeldom == kSeldom - 1 && load_acquire_device(&ring_.stop) != 0) {
          go = 2;
        }
        if (go == 0) back_off(round);
        if (round % kRare == kRare - 1) flush();
      }
      go = __shfl_sync(~0u, go, 0);
      if (go != 0) return go == 1;
    }
  }

  // All workers look at the same task, and one gets it.
  __device__ bool wait_for_any(uint32_t* ticket, uint32_t* task) {
    const bool waits = view_.wait == EDGE_WAIT_RELEASE_ALL;
    for (uint32_t round = 0;; ++round) {
      uint32_t seen = lane() == 0 && waits ? load_acquire_device(&ring_.release) : 0;
      seen = __shfl_sync(~0u, seen, 0);
      if (draw(ticket)) {
        while (!copy(*ticket, task)) {
        }
        return true;
      }
      if ((waits || round % kSeldom == kSeldom - 1) && stops()) {
        if (!draw(ticket)) return false;
        while (!copy(*ticket, task)) {
        }
        return true;
      }
      if (waits) {
        wait_for_release(seen);
      } else {
        if (round % kRare == 0 && lane() == 0) flush();
        __nanosleep(20);
      }
    }
  }

  __device__ void wait_for_release(uint32_t seen) {
    for (uint32_t round = 0;; ++round) {
      uint32_t go = 0;
      if (lane() == 0) {
        ++barrier_polls_;
        go = load_acquire_device(&ring_.release) != seen ? 1 : 0;
        if (round % kSeldom == kSeldom - 1 && load_acquire_device(&ring_.stop) != 0) go = 1;
        if (go == 0) back_off(round);
        if (round % kRare == kRare - 1) flush();
      }
      if (__shfl_sync(~0u, go, 0) != 0) return;
    }
  }

  // The oldest task that nobody has, if there is one.
  __device__ bool draw(uint32_t* ticket) {
    uint32_t got = 0;
    uint32_t next_ticket = 0;
    if (lane() == 0) {
      ++queue_polls_;
      next_ticket = load_device(&ring_.next_ticket);
      const uint64_t word = load_device(&ring_.tasks[next_ticket % kRingSlots][0]);
      if (number_of(word) == next_ticket + 1) {
        got = atomicCAS(&ring_.next_ticket, next_ticket, next_ticket + 1) == next_ticket ? 1 : 0;
      }
    }
    *ticket = __shfl_sync(~0u, next_ticket, 0);
    return __shfl_sync(~0u, got, 0) != 0;
  }

  // False: the task is not there, or not whole.
  __device__ bool copy(uint32_t ticket, uint32_t* task) {
    const uint64_t* const slot = ring_.tasks[ticket % kRingSlots];
    const uint64_t word = load_device(&slot[lane()]);
    const uint64_t first = __shfl_sync(~0u, word, 0);
    const uint32_t words = kTaskHeadWords + (half_of(first) >> 16 & 0xff);
    const bool there =
        number_of(first) == ticket + 1 && (lane() >= words || number_of(word) == ticket + 1);
    if (__any_sync(~0u, !there) != 0) return false;
    task[lane()] = half_of(word);
    for (uint32_t at = kWarp + lane(); at < words; at += kWarp) {
      uint64_t more = load_device(&slot[at]);
      while (number_of(more) != ticket + 1) more = load_device(&slot[at]);
      task[at] = half_of(more);
    }
    __syncwarp();
    // All lanes have used what they read.
    if (lane() == 0) store_device(&ring_.copied[ticket % kRingSlots], ticket + 1);
    return true;
  }

  __device__ bool stops() const {
    const uint32_t stop = lane() == 0 ? load_acquire_device(&ring_.stop) : 0;
    return __shfl_sync(~0u, stop, 0) != 0;
  }

  __device__ void flush() {
    add_to(&view_.state->counts.queue_polls, queue_polls_);
    add_to(&view_.state->counts.barrier_polls, barrier_polls_);
    queue_polls_ = barrier_polls_ = 0;
  }

  const View& view_;
  Ring& ring_;
  uint64_t queue_polls_ = 0;
  uint64_t barrier_polls_ = 0;
};

// Calls the event kernel of the number given. Called by a whole block.
template <typename... Events>
__device__ uint32_t run_event(uint32_t function, const EventBlock& block) {
  uint32_t code = 0;
  uint32_t at = 0;
  const auto run_if = [&](auto* event) {
    using Event = std::remove_pointer_t<decltype(event)>;
    if (function == at++) {
      code =
          Event::run(*reinterpret_cast<const typename Event::Parameters*>(block.parameters), block);
    }
  };
  (run_if(static_cast<Events*>(nullptr)), ...);
  return code;
}

// `number` of the worker counts from 0. Called by a whole block.
template <typename... Events>
__device__ void run_worker(const View& view, uint32_t number) {
  // Parameters begin at a multiple of 16 bytes.
  constexpr uint32_t kTaskAt = (4 - kTaskHeadWords % 4) % 4;
  __shared__ __align__(16) uint32_t task[kTaskWords + kTaskAt];
  __shared__ uint32_t code;
  __shared__ uint32_t goes_on;
  Ring& ring = view.state->rings[number < view.reserved_workers ? 1 : 0];
  TaskSource source(view, ring);
  if (threadIdx.x == 0) code = 0;
  while (true) {
    if (warp() == 0) {
      const bool got = source.next(task + kTaskAt);
      if (lane() == 0) goes_on = got ? 1 : 0;
      // The submitter has written its data before its words.
      if (got && (task[kTaskAt] >> 24 & kTaskParametersOnly) == 0) fence_all();
    }
    __syncthreads();
    if (goes_on == 0) return;
    const uint32_t* const head = task + kTaskAt;
    const uint32_t what = head[0];
    const uint32_t place = head[1];
    const Ended ended = {what & 0xff, head[2],
                         reinterpret_cast<uint64_t*>(uint64_t{head[4]} << 32 | head[3]),
                         what >> 24};
    const uint32_t tasks = (place >> 8 & 0xff) + 1;
    const uint32_t blocks = place >> 16;
    uint32_t largest = 0;
    uint32_t ran = 0;
    for (uint32_t i = place & 0xff; i < blocks; i += tasks) {
      const EventBlock block = {
          i,    blocks, ended.event, ended.number, head + kTaskHeadWords, gpu::dynamic_shared(),
          &view};
      const uint32_t own = run_event<Events...>(what >> 8 & 0xff, block);
      if (own > largest) largest = own;
      ++ran;
      if (tasks != blocks) __syncthreads();
    }
    if (largest != 0) atomicMax(&code, largest);
    __syncthreads();
    if (threadIdx.x == 0) {
      end_task(view, ended, ran, tasks, code);
      atomicAdd(&ring.finished, 1u);
      code = 0;
    }
  }
}

}  // namespace warpcache::edge
