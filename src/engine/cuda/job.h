// SPDX-License-Identifier: Apache-2.0
//
// What host and device say to each other about a batch. Plain layouts in pinned host memory, so
// that whoever can write there (a host thread, another device) can hand in work.
//
// A job is a batch cut into groups; a block of threads takes a group at a time. A group holds whole
// entries (connections, datagrams), or one entry that is larger than a slice. Frames are numbered
// as in the batch; only those of the job's groups are looked at.
#pragma once

#include <cstdint>
#include <type_traits>

#include "request/counters.h"
#include "store/clock.h"
#include "wire/frame_types.h"
#include "wire/packet_types.h"

namespace warpcache::engine::cuda {

// Frames that a block works on at once: one a thread.
inline constexpr uint32_t kSliceFrames = 256;

// Frames of one job at most.
inline constexpr uint32_t kFramesMax = 64 * 1024;
// Groups of one job at most: two that follow each other hold more than a slice together.
inline constexpr uint32_t kGroupsMax = 2 * kFramesMax / kSliceFrames + 1;

struct Group {
  uint32_t first_frame;
  uint32_t frame_count;
};

// What the device has to know of an entry.
struct EntryInfo {
  uint32_t reserved_frame;  // whose body is in `reservation`
  uint32_t reservation;     // 0: none
  uint32_t datagram;        // 1: is answered whole
  uint32_t reserved;
};
static_assert(sizeof(EntryInfo) == 16 && std::is_trivially_copyable_v<EntryInfo>);

// A whole Ethernet frame of the job's input, where a job is made of these.
struct PacketSlot {
  uint32_t offset;  // of its first byte
  uint32_t size;    // bytes
};
static_assert(sizeof(PacketSlot) == 8 && std::is_trivially_copyable_v<PacketSlot>);

// What became of a frame.
enum class FrameState : uint32_t {
  kNotReached,  // something before it in its entry was not done, or the entry has had its share
  kDone,        // effect and reply are complete
  kQuit,        // done, and nothing of its entry behind it was executed
  kDeferred,    // no room in the store: hand it in again after make_room(bytes)
  kHost,        // a command that the host runs, or a packet that takes more than one frame or reply
                // datagram; nothing of it and behind it was executed
  kDropped,     // a packet that is no request: `bytes` is its wire::PacketVerdict
  kLargeValue,  // its value is longer than Job::value_size_max, `bytes` long; nothing was executed
  kNoReplySpace  // the arena is full: hand it in again with an empty one
};

// Written by the device, one a frame. The reply is `size` bytes at `offset` of the reply arena.
struct FrameReply {
  uint32_t offset;
  uint32_t size;
  FrameState state;
  uint32_t bytes;  // as its state says; of what is done: the wire::Outcome
};
static_assert(sizeof(FrameReply) == 16 && std::is_trivially_copyable_v<FrameReply>);

inline constexpr uint32_t kCounterCount = static_cast<uint32_t>(request::Counter::kCount);

// Written by the device, one a group.
struct alignas(32) GroupResult {
  uint32_t counts[kCounterCount];  // what the group adds to request::Counters
  uint32_t reserved[32 - kCounterCount - 2];
  uint32_t free_segments;  // of the store, when the group ended
  uint32_t low_water;      // below it maintenance is wanted
};
static_assert(sizeof(GroupResult) == 128);

// All pointers are valid on the device. The host's buffers are pinned.
struct Job {
  const uint8_t* input;       // host; Frame::offset counts from here
  const wire::Frame* frames;  // host; null in a job of packets
  const PacketSlot* packets;  // host: of such a job, by frame, each an entry of its own
  const Group* groups;        // host
  const EntryInfo* entries;   // host, by entry
  FrameReply* replies;        // host, by frame
  GroupResult* results;       // host, by group
  uint8_t* reply_out;         // host: the reply arena
  uint8_t* input_copy;        // device: mirror of the input
  uint8_t* reply_copy;        // device: mirror of the reply arena
  uint64_t* reply_used;       // device: bytes handed out; 0 before and after a job
  uint32_t* blocks_done;      // device: likewise
  uint32_t group_count;
  uint32_t reply_size;      // bytes of the arena
  uint32_t value_size_max;  // longer ones are left to kLargeValue
  uint32_t first_reader;    // epoch slots of this job's blocks: first_reader + block
  uint32_t item_size_max;   // -I
  store::Clock clock;
  wire::FrameLimits limits;  // of packets' payloads
  uint16_t udp_port;         // packets to others are dropped
  bool cas_enabled;
  bool out_of_memory;  // make_room() has failed: answer instead of deferring
};
static_assert(std::is_trivially_copyable_v<Job>);

// How host and persistent kernel wake each other. In pinned host memory; each word has one writer.
struct alignas(128) Doorbell {
  uint32_t job;   // host: the number of the latest job
  uint32_t stop;  // host: 1: there is no such job, the kernel is to end
  uint32_t reserved[30];
  uint32_t done;  // device: the latest job that is complete
  uint32_t reserved2[31];
};
static_assert(sizeof(Doorbell) == 256);

// How the first block of a persistent kernel wakes the others. In device memory.
struct Turn {
  uint64_t go;  // number of the job << 32 | blocks that work on it, kStopAll: end
  Job job;
};
inline constexpr uint32_t kStopAll = 0xffffffffu;

}  // namespace warpcache::engine::cuda
