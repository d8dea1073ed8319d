// SPDX-License-Identifier: Apache-2.0
//
// What an event kernel sees, and how it submits events. Device code.
#pragma once

#include "edge/device/words.cuh"

namespace warpcache::edge {

// The block's place in its event. `parameters` lie in shared or device memory.
struct EventBlock {
  uint32_t block;
  uint32_t blocks;
  uint32_t event;
  uint32_t number;
  const uint32_t* parameters;
  uint8_t* shared;  // dynamic shared memory
  const View* view;
};

// Submits an event of an EDGE_DEVICE_QUEUE. EDGE_FULL: all entries are in use. Called by one
// thread.
__device__ inline edge_status schedule(const View& view, uint32_t event,
                                       const uint32_t* parameters) {
  QueueState& queue = view.state->queues[event];
  if (load_acquire_device(&queue.facts.open) == 0) return EDGE_CLOSED;
  const Facts& facts = queue.facts;
  auto* const head_word = reinterpret_cast<unsigned long long*>(&queue.head);
  uint64_t head = load_device(&queue.head);
  while (true) {
    const auto position = static_cast<uint32_t>(head);
    const uint64_t free = numbered(number_at(position), kFree);
    if (load_acquire_device(&facts.completions[position & (facts.depth - 1)]) != free) {
      const uint64_t seen = load_device(&queue.head);
      if (seen == head) return EDGE_FULL;
      head = seen;
      continue;
    }
    const uint64_t seen = atomicCAS(head_word, head, uint64_t{static_cast<uint32_t>(position + 1)});
    if (seen == head) break;
    head = seen;
  }
  const auto position = static_cast<uint32_t>(head);
  auto* const words =
      reinterpret_cast<uint64_t*>(reinterpret_cast<uint8_t*>(facts.submissions) +
                                  uint64_t{position & (facts.depth - 1)} * facts.stride);
  __threadfence();
  for (uint32_t i = 0; i < facts.words; ++i) {
    store_device(&words[1 + i], numbered(number_at(position), parameters[i]));
  }
  store_device(&words[0], numbered(number_at(position), 0));
  return EDGE_OK;
}

}  // namespace warpcache::edge
