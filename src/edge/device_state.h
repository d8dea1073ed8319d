// SPDX-License-Identifier: Apache-2.0
//
// What the scheduler and the workers keep in device memory, and how the host hands it to kernels.
#pragma once

#include <cstdint>

#include "edge/layout.h"

namespace warpcache::edge {

inline constexpr uint32_t kWarp = 32;
inline constexpr uint32_t kThreadsMax = 256;  // of a persistent block
inline constexpr uint32_t kRings = 2;         // all workers but the reserved ones; those

// A block of an event, as the scheduler hands it to a worker: numbered words.
inline constexpr uint32_t kTaskHeadWords = 5;
inline constexpr uint32_t kTaskWords = 144;
static_assert(kTaskHeadWords + kParameterWordsMax <= kTaskWords);
inline constexpr uint32_t kRingSlots = 1024;
// Blocks of one event that get a task each. Of more blocks, a task runs several, one after another.
inline constexpr uint32_t kTasksMax = 256;

// Word 0 of a task: event, function, parameter words, and these.
inline constexpr uint32_t kTaskOrdered = 1;
inline constexpr uint32_t kTaskSelfFreeing = 2;
inline constexpr uint32_t kTaskUrgent = 4;
inline constexpr uint32_t kTaskDepthShift = 3;  // four bits: the queue's depth is a power of two
inline constexpr uint32_t kTaskDepthMask = 15;
inline constexpr uint32_t kTaskParametersOnly = 128;
static_assert(EDGE_DEPTH_MAX < 1u << (kTaskDepthMask + 1));
WC_HD constexpr uint32_t task_depth(uint32_t flags) {
  return 1u << (flags >> kTaskDepthShift & kTaskDepthMask);
}
WC_HD constexpr uint32_t task_word(uint32_t event, uint32_t function, uint32_t words,
                                   uint32_t flags) {
  return event | function << 8 | words << 16 | flags << 24;
}

// Tasks for a group of workers. Task t, counted from 0, lies in slot t modulo kRingSlots and has
// number t + 1. A slot is written again once its worker has copied it.
struct Ring {
  alignas(128) uint32_t next_ticket;  // tickets of workers
  alignas(128) uint32_t finished;     // tasks
  alignas(128) uint32_t release;      // the barrier of EDGE_WAIT_RELEASE_ALL
  alignas(128) uint32_t stop;         // 1: no more tasks come
  alignas(128) uint32_t copied[kRingSlots];
  alignas(128) uint64_t tasks[kRingSlots][kTaskWords];
};

// A wait-release barrier: see edge/device/barrier.cuh.
struct alignas(64) Barrier {
  uint32_t generation;
  uint32_t permits;
  uint32_t host_seen;  // of RegionHeader::releases
};

// An event's registration as the scheduler has read it.
struct Facts {
  uint64_t* submissions;
  uint64_t* completions;
  uint32_t function;
  uint32_t depth;
  uint32_t words;
  uint32_t stride;
  uint32_t flags;
  uint32_t blocks;
  uint32_t priority;
  uint32_t serial;
  uint32_t period_us;
  uint32_t notify_count;
  uint32_t notify_us_max;
  uint32_t open;
  uint32_t task_flags;  // see task_flags()
};

WC_HD constexpr uint32_t task_flags(const Facts& facts) {
  uint32_t flags = 0;
  if ((facts.flags & EDGE_IN_ORDER) != 0) flags |= kTaskOrdered;
  if ((facts.flags & (EDGE_SELF_FREEING | EDGE_DEVICE_QUEUE)) != 0) flags |= kTaskSelfFreeing;
  if (facts.priority == EDGE_PRIORITY_2) flags |= kTaskUrgent;
  if ((facts.flags & EDGE_PARAMETERS_ONLY) != 0) flags |= kTaskParametersOnly;
  uint32_t doublings = 0;
  while (1u << doublings != facts.depth) ++doublings;
  return flags | doublings << kTaskDepthShift;
}

struct alignas(128) QueueState {
  Facts facts;
  alignas(128) uint64_t head;  // EDGE_DEVICE_QUEUE: as EventEntry::head
  alignas(128) uint32_t completed;
  uint32_t posted;  // EDGE_IN_ORDER: position of the next completion
  uint32_t post_lock;
  uint32_t ticks_missed;  // a timer's, with all entries in use
};

// An event in flight.
struct Context {
  uint32_t blocks_done;
  uint32_t code;   // the largest of the blocks that have ended
  uint32_t ended;  // EDGE_IN_ORDER: number of the event that has ended
  uint32_t ended_code;
  // What a launched kernel reads.
  uint32_t number;
  uint32_t blocks;
  uint32_t reserved[2];
  uint32_t parameters[kParameterWordsMax];
};

struct Counts {
  uint64_t queue_polls;
  uint64_t barrier_polls;
  uint64_t releases;
  uint64_t bell_polls;
  uint64_t events;
  uint64_t blocks;
  uint64_t busy_launches;
};

struct DeviceState {
  alignas(128) Counts counts;
  alignas(128) uint32_t urgent_finished;  // events of EDGE_PRIORITY_2
  alignas(128) Barrier barriers[kBarriersMax];
  QueueState queues[kEventsMax];
  Ring rings[kRings];
};

// A parameter of the kernels. All pointers are valid on the device.
struct View {
  uint8_t* region;  // host
  DeviceState* state;
  Context* contexts;       // contexts_each for each event
  uint8_t* device_queues;  // of EDGE_DEVICE_QUEUE: device_queue_bytes for each event
  uint64_t device_queue_bytes;
  uint64_t lifetime_ns;  // 0: no limit
  uint32_t contexts_each;
  uint32_t reserved_workers;
  uint32_t release_count;
  uint32_t release_ns_max;
  edge_wait wait;

  WC_HD RegionHeader& header() const { return *reinterpret_cast<RegionHeader*>(region); }
  WC_HD EventEntry& entry(uint32_t event) const {
    return reinterpret_cast<EventEntry*>(region + kTableOffset)[event];
  }
  WC_HD Context& context(uint32_t event, uint32_t position, uint32_t depth) const {
    return contexts[event * contexts_each + (position & (depth - 1))];
  }
};

}  // namespace warpcache::edge
