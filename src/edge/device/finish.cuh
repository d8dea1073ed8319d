// SPDX-License-Identifier: Apache-2.0
//
// The end of an event: its completion word. Device code, for one thread of a block.
#pragma once

#include "edge/device/words.cuh"

namespace warpcache::edge {

// What ends.
struct Ended {
  uint32_t event;
  uint32_t number;
  uint64_t* completion;  // the event's word
  uint32_t flags;        // of its tasks
};

namespace finish_detail {

__device__ inline void post(QueueState& queue, uint64_t* word, uint32_t number, uint32_t code,
                            uint32_t flags) {
  const bool self_freeing = (flags & kTaskSelfFreeing) != 0;
  store_release_system(
      word, self_freeing ? numbered(number + task_depth(flags), kFree) : numbered(number, code));
  atomicAdd(&queue.completed, 1u);
}

// Posts what has ended, in the order of the positions. A thread that does not get the lock leaves
// that to its holder, which looks again after it has released the lock.
__device__ inline void post_in_order(const View& view, uint32_t event, uint32_t flags) {
  QueueState& queue = view.state->queues[event];
  uint64_t* const completions = queue.facts.completions;
  const uint32_t depth = task_depth(flags);
  while (true) {
    if (atomicExch(&queue.post_lock, 1u) != 0) return;
    __threadfence();
    uint32_t position = load_device(&queue.posted);
    Context* next = &view.context(event, position, depth);
    while (load_acquire_device(&next->ended) == number_at(position)) {
      post(queue, &completions[position & (depth - 1)], number_at(position),
           load_device(&next->ended_code), flags);
      store_device(&queue.posted, ++position);
      next = &view.context(event, position, depth);
    }
    __threadfence();
    atomicExch(&queue.post_lock, 0u);
    __threadfence();
    position = load_device(&queue.posted);
    next = &view.context(event, position, depth);
    if (load_acquire_device(&next->ended) != number_at(position)) return;
  }
}

}  // namespace finish_detail

// The end of one of an event's tasks, which has run `blocks` blocks. REQUIRES: all threads of the
// block have done their part and have passed a barrier after it.
__device__ inline void end_task(const View& view, const Ended& ended, uint32_t blocks,
                                uint32_t tasks, uint32_t code) {
  QueueState& queue = view.state->queues[ended.event];
  if (code > EDGE_CODE_MAX) code = EDGE_CODE_MAX;
  Context& context = view.context(ended.event, ended.number - 1, task_depth(ended.flags));
  bool last = true;
  if (tasks > 1) {
    if (code != 0) atomicMax(&context.code, code);
    __threadfence();
    last = atomicAdd(&context.blocks_done, 1u) + 1 == tasks;
    if (last) {
      __threadfence();
      code = load_device(&context.code);
      if (code != 0) store_device(&context.code, 0);
      store_device(&context.blocks_done, 0);
    }
  }
  if (last && (ended.flags & kTaskOrdered) != 0) {
    store_device(&context.ended_code, code);
    __threadfence();
    atomicExch(&context.ended, ended.number);
    __threadfence();
    finish_detail::post_in_order(view, ended.event, ended.flags);
  } else if (last) {
    finish_detail::post(queue, ended.completion, ended.number, code, ended.flags);
  }
  if (last && (ended.flags & kTaskUrgent) != 0) atomicAdd(&view.state->urgent_finished, 1u);
  add_to(&view.state->counts.blocks, blocks);
  if (last) add_to(&view.state->counts.events, 1);
}

}  // namespace warpcache::edge
