// SPDX-License-Identifier: Apache-2.0
//
// The queues as they lie in memory: docs/edge.md, byte by byte. The region is one piece of memory
// that the host and the GPU see, and other processes if it is a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/hd.h"
#include "warpcache/edge.h"

namespace warpcache::edge {

inline constexpr uint64_t kMagic = 0x3145'4744'4550'4157;  // "WAPEDGE1", little-endian
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kEventsMax = EDGE_EVENTS_MAX;
inline constexpr uint32_t kParameterWordsMax = EDGE_PARAMETER_BYTES_MAX / 4;
inline constexpr uint32_t kBarriersMax = EDGE_BARRIERS_MAX;

// A word of a queue: a number in the upper half, four bytes in the lower half. Whoever sees the
// number of an event in all words of an entry has the whole entry, in whatever order the words
// arrived. Both halves are written by one store.
WC_HD constexpr uint64_t numbered(uint32_t number, uint32_t word) {
  return uint64_t{number} << 32 | word;
}
WC_HD constexpr uint32_t number_of(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
WC_HD constexpr uint32_t half_of(uint64_t word) { return static_cast<uint32_t>(word); }

// The lower half of a completion word whose entry is free for the event of its number.
inline constexpr uint32_t kFree = 0xffffffffu;

enum class RegionState : uint32_t { kStopped, kRunning, kFailed };
enum class Command : uint32_t { kRun, kStop };

struct RegionHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t events;  // entries of the table
  uint64_t bytes;   // of the region
  uint32_t state;   // RegionState
  uint32_t reserved[9];
  uint32_t releases[kBarriersMax];  // of each barrier: counts up
  alignas(64) uint64_t control;     // upper half: changes of the table; lower half: Command
};
static_assert(offsetof(RegionHeader, state) == 24 && offsetof(RegionHeader, releases) == 64 &&
              offsetof(RegionHeader, control) == 128);

enum class EventState : uint32_t { kUnused, kOpen };

inline constexpr uint64_t kClosedBit = uint64_t{1} << 63;  // of EventEntry::head

struct alignas(256) EventEntry {
  uint32_t state;  // EventState
  uint32_t function;
  uint32_t depth;   // entries of each queue: a power of two
  uint32_t words;   // of four bytes, of parameters
  uint32_t stride;  // bytes from one entry to the next in the submission queue
  uint32_t flags;
  uint64_t submissions;  // offset in the region
  uint64_t completions;  // offset in the region
  uint32_t blocks;
  uint32_t threads;
  uint32_t shared_bytes;
  uint32_t priority;
  uint32_t serial;  // of the registration: another one each time
  uint32_t period_us;
  // Submitters: events submitted so far in the lower half; the highest bit refuses more.
  alignas(64) uint64_t head;
  uint32_t notify_count;
  uint32_t notify_us_max;
  // Consumers: events whose completion was taken, in order.
  alignas(64) uint64_t tail;
  // The GPU: events that it has taken, completions that it has announced, and the table's change
  // that it has seen.
  alignas(64) uint32_t taken;
  uint32_t notified;
  uint32_t seen;
};
static_assert(sizeof(EventEntry) == 256 && offsetof(EventEntry, submissions) == 24 &&
              offsetof(EventEntry, completions) == 32 && offsetof(EventEntry, blocks) == 40 &&
              offsetof(EventEntry, serial) == 56 && offsetof(EventEntry, head) == 64 &&
              offsetof(EventEntry, tail) == 128 && offsetof(EventEntry, taken) == 192 &&
              offsetof(EventEntry, notified) == 196 && offsetof(EventEntry, seen) == 200);

inline constexpr uint64_t kTableOffset = 4096;
inline constexpr uint64_t kQueuesOffset = kTableOffset + kEventsMax * sizeof(EventEntry);

// Bytes of an entry of the submission queue: the word of its blocks, then its parameters.
WC_HD constexpr uint32_t stride_for(uint32_t words) { return ((1 + words) * 8 + 63) / 64 * 64; }
// Bytes of both queues of an event.
WC_HD constexpr uint64_t queue_bytes(uint32_t depth, uint32_t words) {
  return uint64_t{depth} * (stride_for(words) + 8);
}

// The scheduler reports how far it has taken a queue's events after it has started at most this
// many.
inline constexpr uint32_t kTakenAtOnceMax = 8;

// The event at position p of the queues has number p + 1, and uses entry p modulo depth. Numbers
// wrap at 2^32.
WC_HD constexpr uint32_t number_at(uint32_t position) { return position + 1; }

}  // namespace warpcache::edge
