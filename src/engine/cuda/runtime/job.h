// SPDX-License-Identifier: Apache-2.0
//
// What host and device say to each other about a batch. Plain layouts in pinned host memory, so
// that whoever can write there (a host thread, another device) can hand in work.
//
// There are two kinds of jobs. A FrameJob is a batch of framed requests of connections and
// datagrams, cut into groups: a block of threads takes a group at a time. A group holds whole
// entries, or one entry that is larger than a slice. A PacketJob is a batch of whole Ethernet
// frames, each for itself: a warp takes 32 of them at a time, a chunk.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/atomic.h"
#include "base/hd.h"
#include "net/packet_types.h"
#include "protocol/framing/frame_types.h"
#include "request/counters.h"
#include "store/layout/clock.h"

namespace warpcache::engine::cuda {

// Frames that a block works on at once: one a thread.
inline constexpr uint32_t kSliceFrames = 256;

// Frames of one job at most.
inline constexpr uint32_t kFramesMax = 64 * 1024;
// Groups of one job at most: two that follow each other hold more than a slice together.
inline constexpr uint32_t kGroupsMax = 2 * kFramesMax / kSliceFrames + 1;

// Packets of one job at most.
inline constexpr uint32_t kPacketsMax = 256 * 1024;
// Packets that a warp works on at once: one a lane.
inline constexpr uint32_t kChunkPackets = 32;

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

// What became of a frame.
enum class FrameState : uint32_t {
  kNotReached,   // something before it in its entry was not done, or the entry has had its share
  kDone,         // effect and reply are complete
  kQuit,         // done, and nothing of its entry behind it was executed
  kDeferred,     // no room in the store: hand it in again after reclaim(bytes)
  kHost,         // a command that the host runs; nothing of it and behind it was executed
  kLargeValue,   // its value is longer than FrameJob::value_size_max, `bytes` long; nothing was
                 // executed
  kNoReplySpace  // the arena is full: hand it in again with an empty one
};

// Written by the device, one a frame. The reply is `size` bytes at `offset` of the reply arena.
struct FrameReply {
  uint32_t offset;
  uint32_t size;
  FrameState state;
  uint32_t bytes;  // as its state says; of what is done: the protocol::Outcome
};
static_assert(sizeof(FrameReply) == 16 && std::is_trivially_copyable_v<FrameReply>);

// A whole Ethernet frame of the job's input.
struct PacketSlot {
  uint32_t offset;  // of its first byte
  uint32_t size;    // bytes
};
static_assert(sizeof(PacketSlot) == 8 && std::is_trivially_copyable_v<PacketSlot>);

// What became of a packet.
enum class PacketState : uint32_t {
  kDone,         // effect and reply frame are complete
  kDeferred,     // no room in the store: hand it in again after reclaim()
  kHost,         // see packet_engine.h: nothing was executed
  kDropped,      // is no request
  kNoReplySpace  // the arena is full: hand it in again with an empty one
};

// Written by the device, one a packet; four bytes, since each of them crosses the bus. Replies
// begin at multiples of kReplyGranule and are behind each other in no particular order. A reply is
// one frame, or a FrameRun and the frames that it tells of.
struct PacketResult {
  static constexpr uint32_t kReplyGranule = 16;    // bytes
  static constexpr uint32_t kSizeMax = 1999;       // of a reply frame; above it: states
  static constexpr uint32_t kRunSize = 2047;       // stands for a run
  static constexpr uint32_t kArenaMax = 1u << 25;  // bytes
  static constexpr uint32_t kSizeShift = 21;       // below it: the offset, in granules
  static constexpr uint32_t kLowMask = (1u << kSizeShift) - 1;

  uint32_t word;

  WC_HD static PacketResult done(uint32_t offset, uint32_t size) {
    return {size << kSizeShift | offset / kReplyGranule};
  }
  WC_HD static PacketResult done_run(uint32_t offset) {
    return {kRunSize << kSizeShift | offset / kReplyGranule};
  }
  WC_HD static PacketResult not_done(PacketState state) {
    return {(kSizeMax + static_cast<uint32_t>(state)) << kSizeShift};
  }
  WC_HD static PacketResult dropped(net::PacketVerdict verdict) {
    return {not_done(PacketState::kDropped).word | static_cast<uint32_t>(verdict)};
  }

  WC_HD PacketState state() const {
    const uint32_t size = word >> kSizeShift;
    if (size <= kSizeMax || size == kRunSize) return PacketState::kDone;
    return static_cast<PacketState>(size - kSizeMax);
  }
  // Of one that is done: where its reply is in the arena.
  WC_HD uint32_t offset() const { return (word & kLowMask) * kReplyGranule; }
  WC_HD bool is_run() const { return word >> kSizeShift == kRunSize; }
  // Of a reply that is no run. 0 bytes: there is none.
  WC_HD uint32_t size() const { return word >> kSizeShift; }
  // Of one that was dropped; kRequest: what UDP carried was none.
  WC_HD net::PacketVerdict verdict() const {
    return static_cast<net::PacketVerdict>(word & kLowMask);
  }
};
static_assert(sizeof(PacketResult) == 4 && std::is_trivially_copyable_v<PacketResult>);

// What is in front of the frames of a reply of several datagrams. They follow in their order, each
// at the next multiple of kReplyGranule, and are of one size but for the last.
struct FrameRun {
  uint32_t count;
  uint32_t frame_bytes;
  uint32_t last_bytes;
  uint32_t reserved;

  WC_HD static constexpr uint32_t words_of(uint32_t bytes) {  // granules
    return (bytes + PacketResult::kReplyGranule - 1) / PacketResult::kReplyGranule;
  }
  // Where a frame begins, in granules from the run's own place.
  WC_HD static constexpr uint32_t begin_of(uint32_t frame, uint32_t frame_bytes) {
    return words_of(sizeof(FrameRun)) + frame * words_of(frame_bytes);
  }
};
static_assert(sizeof(FrameRun) == PacketResult::kReplyGranule);

inline constexpr uint32_t kCounterCount = static_cast<uint32_t>(request::Counter::kCount);

// What all of a job's blocks have found. They add it up in the device's memory; the last of them
// writes it to the host's.
struct alignas(32) JobResult {
  uint32_t counts[kCounterCount];  // what the job adds to request::Counters
  uint32_t reserved[32 - kCounterCount - 6];
  uint64_t space_missing;  // what all deferred packets want, bytes
  uint32_t undone;         // packets that are not kDone or kDropped
  uint32_t space_wanted;   // the most bytes that a deferred packet wants
  uint32_t free_segments;  // of the store; a job of one block tells what it has found
  uint32_t low_water;      // below it maintenance is wanted
};
static_assert(sizeof(JobResult) == 128);

// What the blocks of a job share, each on lines of its own. In the device's memory; 0 before and
// after a job.
struct JobWords {
  alignas(64) uint64_t reply_used;   // what of the arena is handed out
  alignas(64) uint32_t blocks_done;  // blocks that are through
  alignas(64) JobResult totals;      // what these have found
};

// What both kinds of jobs have. All pointers are valid on the device.
struct Job {
  JobResult* result;       // host
  uint32_t* done;          // host: gets `number` when all is written
  JobWords* words;         // device
  uint32_t number;         // never 0
  uint32_t first_reader;   // epoch slots of this job's blocks: first_reader + block
  uint32_t shares;         // groups, or chunks: dealt out to the blocks
  uint32_t item_size_max;  // -I
  store::Clock clock;
  bool cas_enabled;
  bool out_of_memory;  // reclaim() has failed: answer instead of deferring
};

// The host's buffers are pinned. Frames are numbered as in the batch; only those of the job's
// groups are looked at.
struct FrameJob : Job {
  const uint8_t* input;           // host; Frame::offset counts from here
  const protocol::Frame* frames;  // host
  const Group* groups;            // host
  const EntryInfo* entries;       // host, by entry
  FrameReply* replies;            // host, by frame
  uint8_t* reply_out;             // host: the reply arena
  uint8_t* input_copy;            // device: mirror of the input
  uint8_t* reply_copy;            // device: mirror of the reply arena
  uint32_t reply_size;            // bytes of the arena
  uint32_t value_size_max;        // longer ones are left to kLargeValue

  WC_HD bool reads_host() const { return true; }  // besides the job itself
};
static_assert(std::is_trivially_copyable_v<FrameJob>);

// Sets of one key in one job: the first that claims it takes effect, the others are answered as if
// it had replaced their values at once. Where thousands of packets set a key that all the world
// reads, they would wait for its lock one by one.
inline constexpr uint32_t kCombineEntries = 64 * 1024;
inline constexpr uint32_t kCombineRoundMax = (1u << 24) - 1;
// The word for a claim: round, key size and where the key lies in the input.
WC_HD constexpr uint64_t combine_entry(uint32_t round, uint32_t key_size, uint32_t key_offset) {
  return uint64_t{round} << 40 | uint64_t{key_size} << 32 | key_offset;
}
WC_HD constexpr uint32_t combine_round(uint64_t entry) {
  return static_cast<uint32_t>(entry >> 40);
}
WC_HD constexpr uint32_t combine_key_size(uint64_t entry) { return entry >> 32 & 0xff; }
WC_HD constexpr uint32_t combine_key_offset(uint64_t entry) { return static_cast<uint32_t>(entry); }

// Input and arena are in pinned memory of the host, or in the device's.
struct PacketJob : Job {
  static constexpr uint32_t kInlineMax = 96;  // bytes: of a short request, in a frame

  const uint8_t* input;     // begins at a multiple of 16 bytes, and is readable up to one
  const PacketSlot* slots;  // host; null: slots of slot_bytes, one behind the other
  PacketResult* packets;    // host, by packet
  uint8_t* reply_out;       // the reply arena; begins at a multiple of 16 bytes
  uint64_t* combine_table;  // device: kCombineEntries, see combine_entry()
  uint32_t* reply_end;      // host: the bytes of the arena that hold replies, at the end
  uint32_t combine_round;   // another one in each job, up to kCombineRoundMax
  uint32_t slot_bytes;
  uint32_t count;
  uint32_t reply_begin;  // bytes of the arena that are not free
  uint32_t reply_size;   // of the arena, at most PacketResult::kArenaMax
  uint16_t udp_port;     // packets to others are dropped
  // All of the input, where it is so little: it comes with the job, which saves a way over the bus.
  uint32_t inline_bytes;  // 0: it does not
  alignas(16) uint8_t inline_input[kInlineMax];

  // Whether the host has written more than the job itself, that the device has to see.
  WC_HD bool reads_host() const { return inline_bytes == 0 || slots != nullptr; }
};
static_assert(std::is_trivially_copyable_v<PacketJob>);

// How host and device wake each other. In pinned host memory; each word has one writer.
template <typename JobKind>
struct Doorbell {
  static constexpr uint32_t kJobWords = sizeof(JobKind) / sizeof(uint32_t);
  static_assert(sizeof(JobKind) % sizeof(uint32_t) == 0);

  // Host, to the kernel that stays: what to do, then the latest job itself. Each word is four bytes
  // of it below the job's number: one look over the bus brings both, and where all words have the
  // same new number, the job is whole.
  alignas(128) uint64_t words[1 + kJobWords];
  // Device: the latest job that is complete.
  alignas(128) uint32_t done;
};
// What words[0] says. A job that is to end the kernel has no other words.
enum class Call : uint32_t { kWork, kEnd };

// REQUIRES: no job is under way.
template <typename JobKind>
void ring(Doorbell<JobKind>& bell, Call call, const JobKind& job, uint32_t number) {
  const auto numbered = [number](uint32_t word) { return uint64_t{number} << 32 | word; };
  uint32_t words[Doorbell<JobKind>::kJobWords];
  std::memcpy(words, &job, sizeof(job));
  store_release(&bell.words[0], numbered(static_cast<uint32_t>(call)));
  if (call == Call::kEnd) return;
  for (uint32_t i = 0; i < Doorbell<JobKind>::kJobWords; ++i) {
    store_release(&bell.words[1 + i], numbered(words[i]));
  }
}

// How the first block of a persistent kernel wakes the others. In device memory.
template <typename JobKind>
struct DeviceDoorbell {
  uint64_t go;  // number of the job << 32 | blocks that work on it, kStopAll: end
  JobKind job;
};
inline constexpr uint32_t kStopAll = 0xffffffffu;

}  // namespace warpcache::engine::cuda
