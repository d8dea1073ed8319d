// SPDX-License-Identifier: Apache-2.0
//
// The end of an event: its completion word. Device code, for one thread of a block.
#pragma once

#include "edge/device/words.cuh"

namespace warpcache::edge {

namespace finish_detail {

__device__ inline void post(QueueState& queue, uint32_t number, uint32_t code, bool self_freeing) {
  const Facts& facts = queue.facts;
  uint64_t* const word = &facts.completions[(number - 1) & (facts.depth - 1)];
  store_release_system(
      word, self_freeing ? numbered(number + facts.depth, kFree) : numbered(number, code));
  atomicAdd(&queue.completed, 1u);
}

// Posts what has ended, in the order of the positions. Who does not get the lock leaves it to the
// one who has it, and who looks again after giving it back.
__device__ inline void post_in_order(const View& view, uint32_t event, bool self_freeing) {
  QueueState& queue = view.state->queues[event];
  while (true) {
    if (atomicExch(&queue.post_lock, 1u) != 0) return;
    __threadfence();
    uint32_t position = load_device(&queue.posted);
    Context* next = &view.context(event, position, queue.facts.depth);
    while (load_acquire_device(&next->ended) == number_at(position)) {
      post(queue, number_at(position), load_device(&next->ended_code), self_freeing);
      store_device(&queue.posted, ++position);
      next = &view.context(event, position, queue.facts.depth);
    }
    __threadfence();
    atomicExch(&queue.post_lock, 0u);
    __threadfence();
    position = load_device(&queue.posted);
    next = &view.context(event, position, queue.facts.depth);
    if (load_acquire_device(&next->ended) != number_at(position)) return;
  }
}

}  // namespace finish_detail

// REQUIRES: all threads of the block have done their part, and a barrier is behind them.
__device__ inline void end_block(const View& view, uint32_t event, uint32_t number, uint32_t blocks,
                                 uint32_t tasks, uint32_t code, uint32_t flags) {
  QueueState& queue = view.state->queues[event];
  const uint32_t depth = queue.facts.depth;
  if (code > EDGE_CODE_MAX) code = EDGE_CODE_MAX;
  Context& context = view.context(event, number - 1, depth);
  if (tasks > 1) {
    if (code != 0) atomicMax(&context.code, code);
    fence_all();
    if (atomicAdd(&context.blocks_done, 1u) + 1 != tasks) return;
    fence_all();
    code = atomicExch(&context.code, 0u);
    atomicExch(&context.blocks_done, 0u);
  }
  add_to(&view.state->counts.events, 1);
  add_to(&view.state->counts.blocks, blocks);
  const bool self_freeing = (flags & kTaskSelfFreeing) != 0;
  if ((flags & kTaskOrdered) != 0) {
    store_device(&context.ended_code, code);
    fence_all();
    atomicExch(&context.ended, number);
    __threadfence();
    finish_detail::post_in_order(view, event, self_freeing);
  } else {
    finish_detail::post(queue, number, code, self_freeing);
  }
  if ((flags & kTaskUrgent) != 0) atomicAdd(&view.state->urgent_finished, 1u);
}

}  // namespace warpcache::edge
